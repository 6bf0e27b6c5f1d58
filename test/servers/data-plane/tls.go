package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"

	"golang.org/x/crypto/chacha20poly1305"
)

// TLS 1.3 (RFC 8446) as far as REALITY needs it.

const (
	recordChange      = 20
	recordAlert       = 21
	recordHandshake   = 22
	recordApplication = 23

	messageClientHello       = 1
	messageServerHello       = 2
	messageEncrypted         = 8
	messageCertificate       = 11
	messageCertificateVerify = 15
	messageFinished          = 20

	groupX25519 = 0x001d
	groupHybrid = 0x11ec
)

var changeRecord = []byte{recordChange, 3, 3, 0, 1, 1}

type suite struct {
	hash     func() hash.Hash
	keyBytes int
	aead     func(key []byte) (cipher.AEAD, error)
}

func gcm(key []byte) (cipher.AEAD, error) {
	return cipher.NewGCM(must(aes.NewCipher(key)))
}

var suites = map[uint16]suite{
	0x1301: {sha256.New, 16, gcm},
	0x1302: {sha512.New384, 32, gcm},
	0x1303: {sha256.New, 32, chacha20poly1305.New},
}

func (of suite) sum(data []byte) []byte {
	sum := of.hash()
	sum.Write(data)
	return sum.Sum(nil)
}

func (of suite) mac(key, data []byte) []byte {
	sum := hmac.New(of.hash, key)
	sum.Write(data)
	return sum.Sum(nil)
}

func (of suite) expand(secret []byte, label string, context []byte, length int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(length))
	info = append(info, byte(len("tls13 "+label)))
	info = append(info, "tls13 "+label...)
	info = append(append(info, byte(len(context))), context...)
	return must(hkdf.Expand(of.hash, secret, string(info), length))
}

func (of suite) extract(salt, input []byte) []byte {
	return must(hkdf.Extract(of.hash, input, salt))
}

func (of suite) zeros() []byte { return make([]byte, of.hash().Size()) }

// The traffic secrets of client and server for the handshake, and what the later ones are made from.
func (of suite) handshakeSecrets(shared, transcript []byte) (client, server, master []byte) {
	early := of.extract(nil, of.zeros())
	empty := of.sum(nil)
	secret := of.extract(of.expand(early, "derived", empty, len(empty)), shared)
	sum := of.sum(transcript)
	client = of.expand(secret, "c hs traffic", sum, len(sum))
	server = of.expand(secret, "s hs traffic", sum, len(sum))
	return client, server, of.extract(of.expand(secret, "derived", empty, len(empty)), of.zeros())
}

func (of suite) applicationSecrets(master, transcript []byte) (client, server []byte) {
	sum := of.sum(transcript)
	return of.expand(master, "c ap traffic", sum, len(sum)), of.expand(master, "s ap traffic", sum, len(sum))
}

func (of suite) finished(secret, transcript []byte) []byte {
	key := of.expand(secret, "finished", nil, of.hash().Size())
	return message(messageFinished, of.mac(key, of.sum(transcript)))
}

func message(kind byte, body []byte) []byte {
	return joined([]byte{kind, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body)
}

func record(kind byte, content []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{kind, 3, 3}, uint16(len(content))), content...)
}

func vector16(content []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(content))), content...)
}

// One direction of encrypted records.
type sealer struct {
	aead  cipher.AEAD
	iv    []byte
	count uint64
}

func (of suite) sealer(secret []byte) *sealer {
	key := of.expand(secret, "key", nil, of.keyBytes)
	return &sealer{aead: must(of.aead(key)), iv: of.expand(secret, "iv", nil, 12)}
}

func (of *sealer) nonce() []byte {
	nonce := append([]byte{}, of.iv...)
	counter := binary.BigEndian.AppendUint64(nil, of.count)
	for at, part := range counter {
		nonce[4+at] ^= part
	}
	of.count++
	return nonce
}

const overhead = 5 + 1 + 16

// A record of so many bytes, or of as few as it can have.
func (of *sealer) seal(kind byte, content []byte, length int) ([]byte, error) {
	if length == 0 {
		length = overhead + len(content)
	}
	if length < overhead+len(content) {
		return nil, fmt.Errorf("%d bytes do not fit into a record of %d", len(content), length)
	}
	inner := make([]byte, length-5-16)
	copy(inner, content)
	inner[len(content)] = kind
	header := binary.BigEndian.AppendUint16([]byte{recordApplication, 3, 3}, uint16(length-5))
	return of.aead.Seal(header, of.nonce(), inner, header), nil
}

func (of *sealer) open(header, sealed []byte) (byte, []byte, error) {
	inner, err := of.aead.Open(nil, of.nonce(), sealed, header)
	if err != nil {
		return 0, nil, err
	}
	end := len(inner) - 1
	for end >= 0 && inner[end] == 0 {
		end--
	}
	if end < 0 {
		return 0, nil, errors.New("a record without a type")
	}
	return inner[end], inner[:end], nil
}

func readRecord(from io.Reader) (header, content []byte, err error) {
	header = make([]byte, 5)
	if _, err = io.ReadFull(from, header); err != nil {
		return nil, nil, err
	}
	content = make([]byte, binary.BigEndian.Uint16(header[3:]))
	_, err = io.ReadFull(from, content)
	return header, content, err
}

// The next record inside the encryption; changes of ciphers are passed over.
func readSealed(from io.Reader, by *sealer) (byte, []byte, error) {
	for {
		header, content, err := readRecord(from)
		if err != nil {
			return 0, nil, err
		}
		switch header[0] {
		case recordChange:
		case recordApplication:
			return by.open(header, content)
		default:
			return 0, nil, fmt.Errorf("a record of type %d", header[0])
		}
	}
}

// The bytes inside an established connection.
type inside struct {
	net.Conn
	receive, send *sealer
	waiting       []byte
	ended         bool
}

func (of *inside) Read(into []byte) (int, error) {
	for len(of.waiting) == 0 {
		if of.ended {
			return 0, io.EOF
		}
		kind, content, err := readSealed(of.Conn, of.receive)
		if err != nil {
			return 0, err
		}
		switch {
		case kind == recordApplication:
			of.waiting = content
		case kind == recordAlert && len(content) == 2 && content[1] == 0:
			of.ended = true
		default:
			return 0, fmt.Errorf("a content of type %d inside", kind)
		}
	}
	size := copy(into, of.waiting)
	of.waiting = of.waiting[size:]
	return size, nil
}

func (of *inside) Write(bytes []byte) (int, error) {
	for at := 0; at < len(bytes); at += 16_384 {
		sealed := must(of.send.seal(recordApplication, bytes[at:min(at+16_384, len(bytes))], 0))
		if _, err := of.Conn.Write(sealed); err != nil {
			return at, err
		}
	}
	return len(bytes), nil
}

// Says close_notify, which ends this direction.
func (of *inside) CloseWrite() error {
	_, err := of.Conn.Write(must(of.send.seal(recordAlert, []byte{1, 0}, 0)))
	return err
}

// Reads what a message holds; anything missing is an error in the end.
type reader struct {
	rest  []byte
	short bool
}

func (of *reader) take(size int) []byte {
	if size > len(of.rest) {
		of.short, size = true, len(of.rest)
	}
	taken := of.rest[:size]
	of.rest = of.rest[size:]
	return taken
}

func (of *reader) number(size int) (value int) {
	for _, part := range of.take(size) {
		value = value<<8 | int(part)
	}
	return value
}

func (of *reader) vector(size int) []byte { return of.take(of.number(size)) }

func extensionsOf(bytes []byte) map[int][]byte {
	found := map[int][]byte{}
	for from := (&reader{rest: bytes}); len(from.rest) > 0 && !from.short; {
		kind := from.number(2)
		found[kind] = from.vector(2)
	}
	return found
}
