"""What a failure changes in the plan: strategies, the edits that they propose, and their effects."""
