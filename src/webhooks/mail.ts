/**
 * One mail: sent through the server of `SVC_SMTP_URL`, bounded in time. A password goes over TLS only.
 * Implements `docs/contract/notices.md#webhooks-for-people`, `email`.
 */
import { createTransport } from 'nodemailer';
import { withFirstOf } from '../kernel/background.js';
import { limits } from '../kernel/limits.js';
import type { Answer } from './schedule.js';

export interface MailServer {
  /** `smtp://` or `smtps://`, user and password in it. */
  readonly url: string;
  readonly from: string;
}

export interface Mail {
  /** The same for each try, so that a mailbox which got the last one can drop this one. */
  readonly id: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
}

export interface Mailer {
  /** Never rejects: what went wrong is in the answer. A mail is sent when one recipient is accepted. */
  send(mail: Mail, signal: AbortSignal): Promise<Answer>;
}

export function createMailer({ url, from }: MailServer): Mailer {
  const { protocol, hostname, port, username, password } = new URL(url);
  const isTls = protocol === 'smtps:';
  const { tryMs } = limits.webhooks;
  const domain = from.slice(from.lastIndexOf('@'));
  const hasPassword = username !== '';
  const transport = createTransport({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (isTls ? 465 : 25) : Number(port),
    secure: isTls,
    requireTLS: hasPassword,
    ...(hasPassword ? { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } } : {}),
    connectionTimeout: tryMs,
    greetingTimeout: tryMs,
    socketTimeout: tryMs,
    dnsTimeout: tryMs,
    // An aborted try leaves no connection behind.
    socketCloseTimeout: 0,
    // A mail is only text.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async send({ id, to, subject, text }, signal) {
      const timeout = AbortSignal.timeout(tryMs);
      try {
        const { response } = await withFirstOf([signal, timeout], (ends) =>
          transport.sendMail({ from, to: [...to], messageId: `<${id}${domain}>`, subject, text, signal: ends }),
        );
        return { status: codeOf(response), error: null, retryAfterMs: null };
      } catch (error) {
        if (timeout.aborted) return failed(null, `no answer within ${tryMs / 1000} s`);
        if (signal.aborted) return failed(null, 'the service shut down meanwhile');
        return failed(responseCodeOf(error), sentenceOf(error));
      }
    },
  };
}

const failed = (status: number | null, error: string): Answer => ({ status, error, retryAfterMs: null });

const codeOf = (response: string): number => Number(/^\d{3}/.exec(response)?.[0] ?? 250);

function responseCodeOf(error: unknown): number | null {
  const code = error instanceof Error ? Reflect.get(error, 'responseCode') : undefined;
  return typeof code === 'number' ? code : null;
}

/** Without what the server said: that may name the recipient. */
function sentenceOf(error: unknown): string {
  const [status, code] = [responseCodeOf(error), textIn(error, 'code')];
  // Also if the server has answered that it does not know STARTTLS.
  if (code === 'ETLS') return 'no TLS with the mail server, and a password goes over TLS only';
  if (code === 'EAUTH') return 'the mail server refused the user and password of SVC_SMTP_URL';
  if (status !== null) return `the mail server answered ${status}`;
  switch (code) {
    case 'EENVELOPE':
      return 'the mail server accepted no recipient';
    default:
      // Such as CERT_HAS_EXPIRED, which the library turns into ESOCKET.
      return `the mail server could not be reached (${textIn(error, 'originalCode') ?? code ?? 'unknown'})`;
  }
}

function textIn(error: unknown, field: string): string | undefined {
  const text = error instanceof Error ? Reflect.get(error, field) : undefined;
  return typeof text === 'string' ? text : undefined;
}
