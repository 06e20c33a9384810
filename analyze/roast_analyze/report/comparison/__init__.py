"""The comparison of several traces: data, figures, sentences and the page."""
