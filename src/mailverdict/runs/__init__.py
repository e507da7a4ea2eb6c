"""Many addresses, safely: what is known already, what to ask, what came back."""
