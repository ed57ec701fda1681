package registry

import "slices"

// warnings implements Item.
func (t Template) warnings() (all []string) {
	if t.Status != Active {
		return nil
	}
	add := func(set bool, text string) {
		if set {
			all = append(all, text)
		}
	}
	s := t.Spec
	add(s.ProviderConfig.Type != "" && !slices.Contains([]string{"k8s", "external"},
		s.ProviderConfig.Type), "spec.provider_config.type: only k8s and external have an effect")
	add(s.Parallelism.SP > 1 || s.Parallelism.CP > 1, "spec.parallelism: sp and cp have no effect")
	add(s.ServiceID != "", "spec.service_id has no effect")
	add(s.Quantization.WeightsArtifactURI != "",
		"spec.quantization.weights_artifact_uri has no effect")
	return all
}

// warnings implements Item.
func (p Profile) warnings() (all []string) {
	if why := p.Spec.Storage.unusable(); why != "" {
		all = append(all, why)
	}
	if p.Spec.Storage.Backend == "gcs" {
		all = append(all, "spec.storage: gcs is used through its S3 interface: the Secret must "+
			"have the HMAC keys access-key-id and secret-access-key; service-account.json has no "+
			"effect")
	}
	return all
}
