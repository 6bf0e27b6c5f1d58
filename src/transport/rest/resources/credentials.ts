/** The routes of credentials, and their fields in answers. Implements `docs/contract/rest.md#credentials`. */
import { z } from 'zod';
import type { CredentialChanges, NewCredential } from '../../../commands/handlers-port.js';
import { keyTypes, credentialKey, type CredentialState } from '../../../domain/credential/credential.js';
import type { Referrer } from '../../../domain/fleet/referrers.js';
import { oneOf } from '../schemas/fields.js';
import { instant, sorting } from '../schemas/query.js';
import { component, documented, sample } from '../schemas/documented.js';
import { idOf, managedBy, referrer, timeOf, timestamps } from '../schemas/shared-schemas.js';
import type { RestApp, RestDeps } from '../deps.js';
import { about, credentialBodies, credentialInFile, fileBody } from './credential-bodies.js';
import { listRanked } from './ranked-list.js';
import { resourceRoutes } from './resource-routes.js';

const filters = {
  key_type: oneOf(keyTypes).optional().meta({ description: 'Only credentials of this type' }),
  expires_before: documented(instant.optional(), 'Only certificates that expire before this time', sample.time),
  sort: sorting('not_after', '-not_after').optional().meta({
    description: 'Order of the items, then by id; `-` reverses it. Credentials without a certificate always come last',
    default: 'name',
  }),
};
type Filters = z.output<z.ZodObject<typeof filters>>;

const certificateSchema = component('Certificate', 'The content of a certificate', {
  subject: documented(z.string(), 'Distinguished name', 'CN=app.example'),
  issuer: documented(z.string(), 'Distinguished name', 'CN=app.example'),
  subject_alt_names: documented(z.array(z.string()), 'Names that it is valid for', ['app.example']),
  not_before: timeOf('Valid from'),
  not_after: timeOf('Valid until', '2030-05-01T12:00:00.000Z'),
  serial_number: documented(z.string(), 'Hexadecimal', '1f0c3f5e6d0c4f0b'),
  fingerprint_sha256: documented(z.string(), 'SHA-256 of the certificate in lower-case hex', sample.fingerprint),
  spki_sha256: documented(z.string(), 'Base64 of the SHA-256 of its public key, as in pins', sample.pin),
  self_signed: documented(z.boolean(), 'Whether its own key signed it', true),
});

const credentialSchema = component(
  'Credential',
  'A credential without its private key; fields that its type does not have are null or empty',
  {
    id: idOf('Id, a UUID', sample.reality),
    name: documented(z.string(), 'Name, unique among credentials', 'app'),
    key_type: documented(z.enum(keyTypes), 'Type of the credential', 'reality'),
    public_key: documented(
      z.string().nullable(),
      'Public key in base64url of an `x25519` credential; of a `reality` credential, the key of its key pair, which clients need',
      sample.publicKey,
    ),
    x25519_credential_id: documented(idOf('', sample.keyPair).nullable(), about.x25519_credential_id, sample.keyPair),
    server_names: documented(z.array(z.string()), about.server_names, ['app.example']),
    short_ids: documented(z.array(z.string()), about.short_ids, ['0a1b2c3d']),
    target_host: documented(z.string().nullable(), about.target_host, 'www.example'),
    target_port: documented(z.int().nullable(), about.target_port, 443),
    certificate: documented(certificateSchema.nullable(), 'The certificate of a `tls_cert` credential', null),
    in_use_by: documented(z.array(referrer), 'Resources that use it; they keep it from being deleted'),
    managed_by: managedBy,
    ...timestamps,
  },
);

/** A credential in answers. The schema drops other fields, such as the sealed key. */
export interface CredentialView extends Omit<CredentialState, 'private_key' | 'certificate_pem' | 'overlap'> {
  readonly in_use_by: readonly Referrer[];
}

function credentialView(credential: CredentialState, in_use_by: readonly Referrer[]): CredentialView {
  const { private_key: _key, certificate_pem: _pem, overlap: _overlap, ...shown } = credential;
  return { ...shown, in_use_by };
}

const endsBefore = ({ not_after }: NonNullable<CredentialState['certificate']>, time: string): boolean =>
  Date.parse(not_after) < Date.parse(time);

export function credentialRoutes(app: RestApp, deps: RestDeps): void {
  const queries = deps.fleet.resources.credential;
  const commands = deps.commands.credentials;
  const view = (credential: CredentialState): CredentialView => {
    const { id, x25519_credential_id: keys } = credential;
    const public_key = keys === null ? credential.public_key : (queries.get(keys)?.public_key ?? null);
    return credentialView({ ...credential, public_key }, deps.fleet.referrers(credentialKey.type, id));
  };

  resourceRoutes(app, {
    path: '/api/credentials',
    what: 'credential',
    rollsOut: true,
    names: { one: 'Credential', many: 'Credentials' },
    summaries: {
      list: 'List credentials of all types',
      create: 'Create a credential; only the nodes that use it get its private key',
      get: 'Get a credential',
      update: 'Change a credential, or replace its key or certificate on every node that uses it',
      remove: 'Delete a credential that nothing uses',
    },
    details: {
      create: 'The fields of the body depend on its `key_type`. An omitted key is generated.',
      update:
        "All fields must be of the credential's type. A new key or certificate reaches every node that uses it; a change that would break a user is a 409.",
    },
    shape: {},
    bodies: credentialBodies,
    inFile: { body: fileBody, fieldsOf: credentialInFile },
    schema: credentialSchema,
    filters,
    list(paged, checked) {
      const { key_type, expires_before, sort } = checked as Filters;
      const matches = ({ key_type: type, certificate }: CredentialState): boolean =>
        (key_type === undefined || type === key_type) &&
        (expires_before === undefined || (certificate !== null && endsBefore(certificate, expires_before)));
      const query = { ...paged, matches };
      return sort === 'not_after' || sort === '-not_after'
        ? listRanked(queries, query, sort, ({ certificate }) => certificate?.not_after)
        : queries.list(query);
    },
    get: queries.get,
    create: (context, _definition, checked) => commands.create(context, checked as NewCredential),
    update: (context, id, ifMatch, changes: CredentialChanges) => commands.update(context, id, ifMatch, changes),
    remove: commands.remove,
    views: (credentials) => credentials.map(view),
  });
}
