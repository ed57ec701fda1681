package postgres

import "github.com/jackc/pgx/v5"

// renewCertificates gives a new connection the certificates that the files of the address (such as
// sslrootcert) have now: operators of databases renew them while processes run. If a file can't be
// read at the moment, those of the start stay.
func renewCertificates(address string, conn *pgx.ConnConfig) {
	fresh, err := pgx.ParseConfig(address)
	if err != nil {
		return
	}
	conn.TLSConfig, conn.Fallbacks = fresh.TLSConfig, fresh.Fallbacks
}
