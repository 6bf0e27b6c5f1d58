package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"time"
)

// A TLS server with a certificate of its own that answers nothing.
func target(name string, withRsa, classic, p256 bool) {
	key, err := newKey(withRsa)
	if err != nil {
		fail(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		fail(err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if classic {
		config.CurvePreferences = []tls.CurveID{tls.X25519}
	}
	if p256 {
		config.CurvePreferences = []tls.CurveID{tls.CurveP256}
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		fail(err)
	}
	say(map[string]any{"port": listener.Addr().(*net.TCPAddr).Port})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				_, _ = conn.Read(make([]byte, 1))
			}()
		}
	}()
	untilStdinEnds()
}

func newKey(withRsa bool) (crypto.Signer, error) {
	if withRsa {
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}
