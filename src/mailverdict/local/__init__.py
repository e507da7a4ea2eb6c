"""The local backend: this machine observes, `verdicts` judges, and rows come out by column."""
