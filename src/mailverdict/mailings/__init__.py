"""From a list to a mailing: what becomes of mails is learnt, and rows are released in waves."""
