"""The admission of a pod: review and engine are pure, app is the edge."""
