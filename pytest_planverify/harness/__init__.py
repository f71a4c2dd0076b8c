"""The loop: carries a plan to done with coding agents, and believes only verifications."""
