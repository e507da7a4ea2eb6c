"""From a reply to its reason: an ordered table of rules, and the words that they search for."""
