"""What a reply says of a mailbox: one ordered table of rules and the words they look for."""
