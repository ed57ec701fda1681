package kube

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

// object names what is asked of the API server: one object, or all of a namespace.
type object struct {
	Group, Resource, Namespace string
	Name                       string // empty: all
}

// String returns the object as error messages show it, such as deployments.apps/vllm in namespace
// models.
func (o object) String() string {
	text := o.Resource
	if o.Group != "" {
		text += "." + o.Group
	}
	if o.Name != "" {
		text += "/" + o.Name
	}
	return text + " in namespace " + o.Namespace
}

// PermissionError reports that the API server forbids a request.
type PermissionError struct {
	Verb                       string
	Group, Resource, Namespace string
	Name                       string // of the only object that is needed; empty: any
	Err                        error  // the answer of the API server, which names the user
}

// Error says what to add to which Role.
func (e *PermissionError) Error() string {
	only := ""
	if e.Name != "" {
		only = fmt.Sprintf(", resourceNames [%q]", e.Name)
	}
	return fmt.Sprintf("%v; add to a Role in namespace %s that is bound to this user: "+
		"apiGroups [%q], resources [%q], verbs [%q]%s (docs/kubernetes.md has all rules)",
		e.Err, e.Namespace, e.Group, e.Resource, e.Verb, only)
}

// Unwrap returns the answer of the API server.
func (e *PermissionError) Unwrap() error { return e.Err }

// explain adds to an answer of the API server what was asked, and what to do about a refusal.
func (o object) explain(verb string, err error) error {
	if err == nil {
		return nil
	}
	if apierrors.IsForbidden(err) {
		name := o.Name
		if verb == "create" || verb == "patch" { // of no object yet; of pods that come and go
			name = ""
		}
		err = &PermissionError{verb, o.Group, o.Resource, o.Namespace, name, err}
	}
	return fmt.Errorf("%s %s: %w", verb, o, err)
}

// kindOf returns the label by which metrics count an error.
func kindOf(err error) string {
	var status apierrors.APIStatus
	var network net.Error
	switch {
	case apierrors.IsForbidden(err):
		return "forbidden"
	case apierrors.IsUnauthorized(err):
		return "unauthorized"
	case apierrors.IsNotFound(err):
		return "not_found"
	case apierrors.IsConflict(err):
		return "conflict"
	case apierrors.IsTooManyRequests(err):
		return "throttled"
	case errors.As(err, &status):
		return "refused"
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return "unreachable"
	}
	return "other"
}

// quiet returns a context in which client-go does not log. Its errors reach the log through
// sources, once per change.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }
