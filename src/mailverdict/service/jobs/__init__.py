"""The life of a job: submit, claim, verify, settle, purge; the store and its schema."""
