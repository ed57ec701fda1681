package deploy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// postgresCluster has those fields of the kind Cluster of CloudNativePG 1.28 that the example uses.
// Its module has too many dependencies for a test.
type postgresCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Instances int `json:"instances"`
		Bootstrap struct {
			InitDB struct {
				Database string `json:"database"`
				Owner    string `json:"owner"`
				Encoding string `json:"encoding"`
			} `json:"initdb"`
		} `json:"bootstrap"`
		PostgreSQL struct {
			Synchronous struct {
				Method         string `json:"method"`
				Number         int    `json:"number"`
				DataDurability string `json:"dataDurability"`
				FailoverQuorum bool   `json:"failoverQuorum"`
			} `json:"synchronous"`
			Parameters map[string]string `json:"parameters"`
		} `json:"postgresql"`
		Affinity struct {
			PodAntiAffinityType string `json:"podAntiAffinityType"`
		} `json:"affinity"`
		Storage struct {
			Size resource.Quantity `json:"size"`
		} `json:"storage"`
		Resources corev1.ResourceRequirements `json:"resources"`
	} `json:"spec"`
}

// postgresOf returns a Cluster of CloudNativePG, or what is wrong with it.
func postgresOf(o *unstructured.Unstructured) (c postgresCluster, err error) {
	if kind := o.GetAPIVersion() + " " + o.GetKind(); kind != "postgresql.cnpg.io/v1 Cluster" {
		return c, fmt.Errorf("the test does not know the kind %s", kind)
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return c, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return c, err
	}
	sync, apart := c.Spec.PostgreSQL.Synchronous, c.Spec.Affinity.PodAntiAffinityType
	switch {
	case sync.Method != "any" && sync.Method != "first":
		return c, fmt.Errorf("the method is %q", sync.Method)
	case sync.Number < 1 || sync.Number >= c.Spec.Instances:
		return c, fmt.Errorf("%d of %d instances are synchronous", sync.Number, c.Spec.Instances)
	case sync.DataDurability != "required" && sync.DataDurability != "preferred":
		return c, fmt.Errorf("the durability is %q", sync.DataDurability)
	case apart != "required" && apart != "preferred":
		return c, fmt.Errorf("the anti-affinity is %q", apart)
	case c.Spec.Storage.Size.IsZero():
		return c, errors.New("the storage has no size")
	}
	return c, nil
}
