package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
)

const (
	headerBytes  = 16
	messageBytes = 48_000_000
	opMsg        = 2013
	moreToCome   = 2
)

// Commands that change documents or collections.
var writing = map[string]bool{
	"insert": true, "update": true, "delete": true, "findAndModify": true, "findandmodify": true,
	"create": true, "createIndexes": true, "dropIndexes": true, "drop": true, "dropDatabase": true,
	"renameCollection": true, "collMod": true,
}

var oneWrite sync.Mutex

// serve relays each connection over its own connection to the address, until the listener is closed.
func serve(front net.Listener, address string) {
	for {
		client, err := front.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer server.Close()
			for relayOne(client, server) == nil {
			}
		}()
	}
}

// relayOne passes one request on and its answer back.
func relayOne(client, server net.Conn) error {
	request, err := readMessage(client)
	if err != nil {
		return err
	}
	answer, err := exchange(server, request)
	if err != nil || answer == nil {
		return err
	}
	_, err = client.Write(answer)
	return err
}

// exchange returns no answer for a request that expects none.
func exchange(server net.Conn, request []byte) ([]byte, error) {
	if writing[commandName(request)] {
		oneWrite.Lock()
		defer oneWrite.Unlock()
	}
	if _, err := server.Write(request); err != nil {
		return nil, err
	}
	if opCode(request) == opMsg && len(request) >= headerBytes+4 &&
		binary.LittleEndian.Uint32(request[headerBytes:])&moreToCome != 0 {
		return nil, nil
	}
	return readMessage(server)
}

func opCode(message []byte) uint32 {
	return binary.LittleEndian.Uint32(message[12:])
}

// commandName is the name of the first field of the document of an OP_MSG; empty for anything else.
func commandName(message []byte) string {
	// Header, flags, kind of the section (0: the document itself), length of the document, type of its first field.
	const nameAt = headerBytes + 4 + 1 + 4 + 1
	if opCode(message) != opMsg || len(message) <= nameAt || message[headerBytes+4] != 0 {
		return ""
	}
	name, _, found := bytes.Cut(message[nameAt:], []byte{0})
	if !found {
		return ""
	}
	return string(name)
}

func readMessage(from io.Reader) ([]byte, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint32(header[:])
	if length < headerBytes || length > messageBytes {
		return nil, errors.New("not a message of the MongoDB protocol")
	}
	message := make([]byte, length)
	copy(message, header[:])
	_, err := io.ReadFull(from, message[headerBytes:])
	return message, err
}
