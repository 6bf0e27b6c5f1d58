/**
 * The routes of credentials. Their fields are in `credential-schema.ts`. Private keys come in and never go out.
 * Implements `docs/contract/rest.md#credentials`.
 */
import type { CredentialChanges, NewCredential } from '../../../commands/handlers-port.js';
import type { CredentialState } from '../../../domain/credential/credential.js';
import { credentialKey } from '../../../domain/credential/credential.js';
import type { CredentialView } from './credential-schema.js';
import { credentialBodies, credentialSchema, credentialView, keyTypeFilter } from './credential-schema.js';
import type { RestApp, RestDeps } from '../deps.js';
import { resourceRoutes } from './resource-routes.js';

export function credentialRoutes(app: RestApp, deps: RestDeps): void {
  const queries = deps.fleet.resources.credential;
  const commands = deps.commands.credentials;
  const view = (credential: CredentialState): CredentialView =>
    credentialView(credential, deps.fleet.referrers(credentialKey.type, credential.id));

  resourceRoutes(app, {
    path: '/api/credentials',
    what: 'credential',
    tag: 'credentials',
    names: { one: 'Credential', many: 'Credentials' },
    summaries: {
      list: 'List credentials of all types',
      create: 'Create a credential; its private key never leaves the service except to the nodes that use it',
      get: 'Get a credential',
      update: 'Change a credential, or replace its key or certificate on every node that uses it',
      remove: 'Delete a credential that nothing uses',
    },
    details: {
      create: 'What a body holds depends on its `key_type`. A key that is left out is generated.',
      update:
        "All fields must be of the credential's type. A new key or certificate reaches every node that uses it; a change that would break a user is a 409.",
    },
    shape: {},
    bodies: credentialBodies,
    schema: credentialSchema,
    filters: { key_type: keyTypeFilter },
    list(paged, { key_type }) {
      const matches = (credential: CredentialState): boolean => credential.key_type === key_type;
      const { items, total } = queries.list({ ...paged, ...(key_type === undefined ? {} : { matches }) });
      return { items: items.map(view), total };
    },
    get(id) {
      const credential = queries.get(id);
      return credential === undefined ? undefined : view(credential);
    },
    create: (context, _definition, checked) => commands.create(context, checked as unknown as NewCredential),
    update: (context, id, ifMatch, changes: CredentialChanges) => commands.update(context, id, ifMatch, changes),
    remove: commands.remove,
    view,
    createdView: view,
  });
}
