package main

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	utls "github.com/refraction-networking/utls"
	"golang.org/x/crypto/hkdf"
)

var browsers = map[string]utls.ClientHelloID{
	"chrome":  utls.HelloChrome_Auto,
	"firefox": utls.HelloFirefox_Auto,
	"safari":  utls.HelloSafari_Auto,
}

// Shakes hands as a browser would, checks that the service answered, and exchanges random bytes with its echo.
func call(address string, publicKey []byte, shortId [8]byte, name, browser string, count int) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		fail(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	var authKey []byte
	verified := false
	config := &utls.Config{
		ServerName:             name,
		InsecureSkipVerify:     true,
		SessionTicketsDisabled: true,
		VerifyPeerCertificate: func(certificates [][]byte, _ [][]*x509.Certificate) error {
			leaf, err := x509.ParseCertificate(certificates[0])
			if err != nil {
				return err
			}
			key, ok := leaf.PublicKey.(ed25519.PublicKey)
			mac := hmac.New(sha512.New, authKey)
			mac.Write(key)
			verified = ok && hmac.Equal(mac.Sum(nil), leaf.Signature)
			return nil
		},
	}
	client := utls.UClient(conn, config, browsers[browser])
	if authKey, err = claim(client, publicKey, shortId); err != nil {
		fail(err)
	}
	if err := client.Handshake(); err != nil {
		fail(err)
	}
	if !verified {
		say(map[string]any{"verified": false})
		return
	}
	echoed, err := echo(client, count)
	if err != nil {
		fail(err)
	}
	say(map[string]any{"verified": true, "echoed": echoed})
}

// Puts the claim into the session id of the hello.
func claim(client *utls.UConn, publicKey []byte, shortId [8]byte) ([]byte, error) {
	if err := client.BuildHandshakeState(); err != nil {
		return nil, err
	}
	hello := client.HandshakeState.Hello
	hello.SessionId = make([]byte, 32)
	copy(hello.Raw[39:], hello.SessionId)
	copy(hello.SessionId, []byte{26, 3, 27, 0})
	binary.BigEndian.PutUint32(hello.SessionId[4:], uint32(time.Now().Unix()))
	copy(hello.SessionId[8:], shortId[:])
	keys := client.HandshakeState.State13.KeyShareKeys
	if keys == nil {
		return nil, errors.New("the hello has no key share")
	}
	own := keys.Ecdhe
	if own == nil {
		own = keys.MlkemEcdhe
	}
	server, err := ecdh.X25519().NewPublicKey(publicKey)
	if err != nil {
		return nil, err
	}
	authKey, err := own.ECDH(server)
	if err != nil {
		return nil, err
	}
	if _, err := hkdf.New(sha256.New, authKey, hello.Random[:20], []byte("REALITY")).Read(authKey); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(authKey)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	aead.Seal(hello.SessionId[:0], hello.Random[20:], hello.SessionId[:16], hello.Raw)
	copy(hello.Raw[39:], hello.SessionId)
	return authKey, nil
}

func echo(conn io.ReadWriter, count int) (bool, error) {
	sent := make([]byte, count)
	if _, err := rand.Read(sent); err != nil {
		return false, err
	}
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Write(sent)
		failed <- err
	}()
	got := make([]byte, count)
	if _, err := io.ReadFull(conn, got); err != nil {
		return false, err
	}
	return bytes.Equal(sent, got), <-failed
}
