package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/binary"
)

// How REALITY hides in a handshake (docs/reality.md), for both sides.

func authKey(own *ecdh.PrivateKey, other, random []byte) ([]byte, error) {
	shared, err := agree(own, other)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, shared, random[:20], "REALITY", 32)
}

const sessionIdAt = 4 + 2 + 32 + 1

func claimAead(key []byte) cipher.AEAD { return must(cipher.NewGCM(must(aes.NewCipher(key)))) }

func claimOf(version []byte, seconds uint32, shortId []byte) []byte {
	return joined(version, []byte{0}, binary.BigEndian.AppendUint32(nil, seconds), shortId)
}

// The session id of a hello that has zeros in its place.
func sealClaim(key, hello, claim []byte) []byte {
	return claimAead(key).Seal(nil, randomOf(hello)[20:], claim, hello)
}

func randomOf(hello []byte) []byte { return hello[6:38] }

func helloWith(hello, sessionId []byte) []byte {
	return joined(hello[:sessionIdAt], sessionId, hello[sessionIdAt+32:])
}

func openClaim(key, hello []byte) ([]byte, error) {
	associated := helloWith(hello, make([]byte, 32))
	return claimAead(key).Open(nil, randomOf(hello)[20:], hello[sessionIdAt:sessionIdAt+32], associated)
}

// What stands in the place of the certificate's signature.
func bindingOf(key, public []byte) []byte {
	sum := hmac.New(sha512.New, key)
	sum.Write(public)
	return sum.Sum(nil)
}

// The key of a certificate that binds it; nil for any other certificate.
func boundKey(der, key []byte) ed25519.PublicKey {
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil
	}
	public, ok := certificate.PublicKey.(ed25519.PublicKey)
	if !ok || !hmac.Equal(certificate.Signature, bindingOf(key, public)) {
		return nil
	}
	return public
}

// A ClientHello with zeros as its session id, and one share of X25519.
func plainHello(name string, share []byte) []byte {
	random := make([]byte, 32)
	must(rand.Read(random))
	extension := func(kind uint16, content []byte) []byte {
		return append(binary.BigEndian.AppendUint16(nil, kind), vector16(content)...)
	}
	extensions := joined(
		extension(0, vector16(joined([]byte{0}, vector16([]byte(name))))),
		extension(10, vector16([]byte{0, groupX25519})),
		extension(13, vector16([]byte{4, 3, 8, 4, 8, 5, 8, 6, 4, 1, 5, 1, 8, 7})),
		extension(43, []byte{2, 3, 4}),
		extension(51, vector16(joined([]byte{0, groupX25519}, vector16(share)))),
	)
	return message(messageClientHello, joined(
		[]byte{3, 3}, random, []byte{32}, make([]byte, 32),
		vector16([]byte{0x13, 2, 0x13, 1, 0x13, 3}), []byte{1, 0}, vector16(extensions),
	))
}
