package autoscale

// sentences say what determines a number of replicas.
var sentences = map[Reason]string{
	ReasonNone:        "Nothing needs replicas.",
	ReasonMinimum:     "It is the configured minimum.",
	ReasonInteractive: "The interactive traffic that is expected needs as many.",
	ReasonDeadline:    "With fewer a deadline would be missed.",
	ReasonAtRisk:      "With fewer a deadline would be missed if less gets done than expected.",
	ReasonStartBy:     "A batch must start soon.",
	ReasonLearning: "A new batch may be too large to wait; a replica shows how long its lines " +
		"take.",
	ReasonMaximum: "More are needed than the configured maximum.",
	ReasonPaid: "Running replicas are kept until the work is done, since others would have to " +
		"start later.",
	ReasonHolding: "Fewer would suffice, but not for long enough yet, or nothing is known of the " +
		"traffic.",
	ReasonQueue: "The length of the queue asks for as many.",
	ReasonFixed: "The number is a constant.",
}

// Sentence says what the reason means.
func (r Reason) Sentence() string { return sentences[r] }
