package deploy_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// strict decodes objects of Kubernetes and of the Prometheus operator into their types. Unknown
// fields are errors.
var strict = sync.OnceValue(func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, monitoringv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // the groups are different
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
})

// conforms reports what of an object its API does not know or accept.
func conforms(t *testing.T, o *unstructured.Unstructured) error {
	t.Helper()
	switch o.GroupVersionKind().Group {
	case "keda.sh":
		return conformsToKEDA(t, o)
	case "postgresql.cnpg.io":
		_, err := postgresOf(o)
		return err
	}
	json, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	_, _, err = strict().Decode(json, nil, nil)
	return err
}

// conformsToKEDA validates an object by the CustomResourceDefinition in KEDA's module.
func conformsToKEDA(t *testing.T, o *unstructured.Unstructured) error {
	t.Helper()
	gvk := o.GroupVersionKind()
	file := fmt.Sprintf("%s_%ss.yaml", gvk.Group, strings.ToLower(gvk.Kind))
	var crd apiextensionsv1.CustomResourceDefinition
	text := read(t, filepath.Join(kedaModule(t), "config", "crd", "bases", file))
	if err := yaml.Unmarshal([]byte(text), &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		if version.Name != gvk.Version {
			continue
		}
		var props apiextensions.JSONSchemaProps
		err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
			version.Schema.OpenAPIV3Schema, &props, nil)
		if err != nil {
			return err
		}
		structural, err := schema.NewStructural(&props)
		if err != nil {
			return err
		}
		if unknown := pruning.PruneWithOptions(o.DeepCopy().Object, structural, true,
			schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(unknown) > 0 {
			return fmt.Errorf("unknown fields: %s", strings.Join(unknown, ", "))
		}
		validator, _, err := validation.NewSchemaValidator(&props)
		if err != nil {
			return err
		}
		return validation.ValidateCustomResource(nil, o.Object, validator).ToAggregate()
	}
	return errors.New("KEDA has no version " + gvk.Version)
}

// kedaModule returns the directory of KEDA's module, whose version is that of the main module.
func kedaModule(t *testing.T) string {
	t.Helper()
	c := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/kedacore/keda/v2")
	c.Dir = "../.."
	dir, err := c.Output()
	if err != nil {
		t.Fatalf("find the module of KEDA: %v", err)
	}
	return strings.TrimSpace(string(dir))
}
