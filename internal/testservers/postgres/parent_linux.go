package postgres

import "syscall"

// endWithParent has the kernel end the process when this one ends.
func endWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGQUIT }
