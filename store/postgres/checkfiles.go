package postgres

// CheckFiles reads the file of the password and reports a fault with the path of its field.
// Validate reads those that the URL names. It sends nothing and reads no environment variable.
func (c Config) CheckFiles() error {
	if c.PasswordFile == "" || c.PasswordEnv != "" {
		return nil
	}
	_, err := readPassword(c)
	return err
}
