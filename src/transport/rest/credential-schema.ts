/**
 * The fields of credentials in requests and answers. What a body may hold depends on the type; an update does not say its
 * type, so its fields must be of one. Implements `docs/contract/rest.md#credentials`.
 */
import { z } from 'zod';
import type { CredentialChanges, NewCredential } from '../../commands/handlers-port.js';
import type { CredentialState } from '../../domain/credential/credential.js';
import { keyTypes } from '../../domain/credential/credential.js';
import { canonicalNamePattern } from '../../kernel/addresses.js';
import { limits } from '../../kernel/limits.js';
import type { Referrer } from '../../delivery/port.js';
import {
  base64,
  body,
  canonical,
  distinct,
  dnsName,
  host,
  integer,
  name,
  namePattern,
  object,
  oneOf,
  port,
  text,
  uuid,
} from './fields.js';
import { time, timestamps } from './shared-schemas.js';
import { expected } from './validation.js';

/** Of an attribute of a distinguished name (RFC 5280, ub-common-name). */
const commonNameChars = 64;
/** Certificates that live longer than their gateways help nobody. */
const selfSignedDaysMax = 36_500;

const privateKey = base64(32, 'base64url').nullable();

const shortId = canonical(`hexadecimal of an even number of digits, at most ${limits.rest.shortIdDigits}`, (value) => {
  const fits = value.length <= limits.rest.shortIdDigits && value.length % 2 === 0 && /^[0-9a-fA-F]*$/.test(value);
  return fits ? value.toLowerCase() : undefined;
});

const pem = text(1, limits.rest.pemChars);

const selfSigned = object({
  common_name: text(1, commonNameChars),
  subject_alt_names: distinct(namePattern).optional(),
  days: integer(1, selfSignedDaysMax).optional().meta({ default: limits.rest.selfSignedDaysDefault }),
})
  .superRefine(({ common_name, subject_alt_names = [] }, ctx) => {
    if (subject_alt_names.length > 0 || canonicalNamePattern(common_name) !== undefined) return;
    const message = 'expected a DNS name, because there are no subject_alt_names';
    ctx.addIssue({ code: 'custom', path: ['common_name'], message });
  })
  .meta({ id: 'SelfSigned' });

const x25519 = { private_key: privateKey };
const reality = {
  x25519_credential_id: uuid,
  server_names: distinct(dnsName, 1),
  short_ids: distinct(shortId, 1, 'short id'),
  target_host: host,
  target_port: port,
};
const tls = { certificate_pem: pem, private_key_pem: pem, self_signed: selfSigned };

type Sent = { readonly [F in keyof (typeof x25519 & typeof reality & typeof tls)]?: unknown };

/** A key and its certificate are either given or made. */
function checkTls(sent: Sent, ctx: z.core.$RefinementCtx): void {
  const issue = (field: keyof Sent, message: string): void =>
    void ctx.addIssue({ code: 'custom', path: [field], message });
  const { certificate_pem, private_key_pem, self_signed } = sent;
  if (self_signed !== undefined) {
    if (certificate_pem !== undefined) issue('certificate_pem', 'expected none beside self_signed');
    if (private_key_pem !== undefined) issue('private_key_pem', 'expected none beside self_signed');
  } else if (private_key_pem !== undefined && certificate_pem === undefined) {
    issue('certificate_pem', 'required, expected the certificate of private_key_pem');
  }
}

const createBody: z.ZodType<NewCredential> = z.discriminatedUnion(
  'key_type',
  [
    body({ name, key_type: z.literal('x25519'), private_key: privateKey.optional() }),
    body({ name, key_type: z.literal('reality'), ...reality }),
    body({ name, key_type: z.literal('tls_cert'), ...partial(tls) }).superRefine((sent, ctx) => {
      checkTls(sent, ctx);
      if (sent.self_signed !== undefined) return;
      if (sent.certificate_pem === undefined && sent.private_key_pem === undefined) {
        const message = 'required, expected PEM certificates, or self_signed instead';
        ctx.addIssue({ code: 'custom', path: ['certificate_pem'], message });
      } else if (sent.private_key_pem === undefined) {
        const message = 'required, expected the PEM key of certificate_pem';
        ctx.addIssue({ code: 'custom', path: ['private_key_pem'], message });
      }
    }),
  ],
  { error: expected(`an object with key_type ${keyTypes.map((type) => `"${type}"`).join(' or ')}`) },
);

const updateBody: z.ZodType<CredentialChanges> = body({
  name: name.optional(),
  ...partial(x25519),
  ...partial(reality),
  ...partial(tls),
}).superRefine((sent, ctx) => {
  const groups = [x25519, reality, tls].map((fields) =>
    Object.keys(fields).filter((field) => Reflect.has(sent, field)),
  );
  const [[first] = [], [other] = []] = groups.filter((fields) => fields.length > 0);
  if (first !== undefined && other !== undefined) {
    const message = `expected fields of one key_type, ${first} is one of another`;
    ctx.addIssue({ code: 'custom', path: [other], message });
  }
  checkTls(sent, ctx);
});

export const credentialBodies = { create: createBody, update: updateBody };

export const keyTypeFilter = oneOf(keyTypes).optional().meta({ description: 'Only credentials of this type' });

const certificateSchema = z.object({
  subject: z.string(),
  issuer: z.string(),
  subject_alt_names: z.array(z.string()),
  not_before: time,
  not_after: time,
  serial_number: z.string(),
  fingerprint_sha256: z.string(),
  spki_sha256: z.string(),
  self_signed: z.boolean(),
});

export const credentialSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    key_type: z.enum(keyTypes),
    public_key: z.string().nullable(),
    x25519_credential_id: z.string().nullable(),
    server_names: z.array(z.string()),
    short_ids: z.array(z.string()),
    target_host: z.string().nullable(),
    target_port: z.int().nullable(),
    certificate: certificateSchema.nullable(),
    in_use_by: z.array(z.object({ type: z.string(), id: z.string(), name: z.string() })),
    ...timestamps,
  })
  .meta({ id: 'Credential' });

/** A credential as answers show it. The schema leaves out what it does not name, the sealed key among it. */
export interface CredentialView extends Omit<CredentialState, 'private_key' | 'certificate_pem' | 'overlap'> {
  readonly in_use_by: readonly Referrer[];
}

export function credentialView(credential: CredentialState, in_use_by: readonly Referrer[]): CredentialView {
  const { private_key: _key, certificate_pem: _pem, overlap: _overlap, ...shown } = credential;
  return { ...shown, in_use_by };
}

/** The same fields, none of them required. */
function partial<S extends { readonly [field: string]: z.ZodType }>(
  fields: S,
): { readonly [F in keyof S]: z.ZodOptional<S[F]> } {
  return Object.fromEntries(Object.entries(fields).map(([field, schema]) => [field, schema.optional()])) as {
    readonly [F in keyof S]: z.ZodOptional<S[F]>;
  };
}
