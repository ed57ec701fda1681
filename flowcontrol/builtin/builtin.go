// Package builtin registers all policies of this project with package flowcontrol. Import it for
// that alone:
//
//	import _ "github.com/tidefill/tidefill/flowcontrol/builtin"
package builtin

import (
	// Each package registers its policy.
	_ "github.com/tidefill/tidefill/flowcontrol/aimd"
	_ "github.com/tidefill/tidefill/flowcontrol/fixed"
	_ "github.com/tidefill/tidefill/flowcontrol/headroom"
	_ "github.com/tidefill/tidefill/flowcontrol/schedule"
)
