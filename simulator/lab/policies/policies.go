// Package policies registers the flow-control policies that exist to be compared with, beside those
// of package flowcontrol/builtin. Import it for that alone.
package policies

import (
	_ "github.com/tidefill/tidefill/flowcontrol/builtin"
	_ "github.com/tidefill/tidefill/simulator/lab/policies/budget"
	_ "github.com/tidefill/tidefill/simulator/lab/policies/gradient"
	_ "github.com/tidefill/tidefill/simulator/lab/policies/model"
	_ "github.com/tidefill/tidefill/simulator/lab/policies/saturation"
)
