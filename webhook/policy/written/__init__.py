"""One write of a policy set's object, judged before it is stored."""
