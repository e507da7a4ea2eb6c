"""From a reply to its reason: one ordered table of rules, and the vocabulary that they search for."""
