"""Tables, figures and pages of the results, written from the files under results/ alone."""
