"""The claims of the papers, measured again: what each says, how it is measured, and the page with the verdicts."""
