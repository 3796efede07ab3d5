"""caliber: an A/B campaign for Triton compilers whose verdicts refuse to compare what is not comparable."""
