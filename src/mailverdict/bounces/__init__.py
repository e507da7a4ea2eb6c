"""What really happened to mails: `read_bounces` reads mailboxes and the exports of senders into one frame."""
