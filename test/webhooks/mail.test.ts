/** Mail that is not sent, and why: `docs/contract/notices.md#webhooks-for-people`, "a password goes over TLS only". */
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterEach, expect, test } from 'vitest';
import { createMailer } from '../../src/webhooks/mail.js';
import { createCertificate } from '../support/certificate.js';

let server: SMTPServer | undefined;
afterEach(() => new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve()))));

/** Sends a mail with a password to such a server. @returns the error, and the passwords that the server got */
async function sent(options: SMTPServerOptions): Promise<object> {
  const auths: unknown[] = [];
  const made = new SMTPServer({
    ...options,
    onAuth(auth, _session, callback) {
      auths.push(auth);
      callback(null, { user: 'gateway' });
    },
  });
  server = made;
  made.on('error', () => undefined);
  await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', () => resolve()));
  const { port } = made.server.address() as AddressInfo;
  const mailer = createMailer({ url: `smtp://gateway:secret@127.0.0.1:${port}`, from: 'gateway@example.com' });
  const mail = { id: 'message', to: ['anna@example.com'], subject: 'subject', text: 'text' };
  const { error } = await mailer.send(mail, new AbortController().signal);
  return { error, auths };
}

test('a server without TLS gets no password', async () => {
  const error = 'no TLS with the mail server, and a password goes over TLS only';
  expect(await sent({ disabledCommands: ['STARTTLS'], allowInsecureAuth: true })).toEqual({ error, auths: [] });
});

test('one whose certificate is not trusted neither, and the fault of the certificate is named', async () => {
  const error = 'the mail server could not be reached (DEPTH_ZERO_SELF_SIGNED_CERT)';
  expect(await sent(createCertificate())).toEqual({ error, auths: [] });
});
