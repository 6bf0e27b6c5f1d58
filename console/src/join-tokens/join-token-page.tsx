/** One join token: the machines that it let in, live. The line to paste was shown once and is not here. */
import { Labels } from '../shared/ui/labels.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { When } from '../shared/ui/when.js';
import { joinTokens } from './join-tokens.js';
import { text } from './join-tokens.text.js';
import { Lets } from './lets.js';
import { Machines } from './machines.js';

export const JoinTokenPage = resourcePage(joinTokens, ({ resource: token }) => (
  <ResourcePage
    of={joinTokens}
    resource={token}
    aside={<Lets token={token} />}
    removeMeaning={text.removeMeaning}
    removedForGood
    facts={{
      [text.used]: text.usedOf(token.used, token.uses),
      [text.expires]: <When at={token.expires_at} />,
      [text.labels]: Object.keys(token.labels).length === 0 ? text.none : <Labels labels={token.labels} />,
      [text.prefix]: token.name_prefix ?? text.none,
      [text.madeBy]: token.created_by.name,
    }}
  >
    <Machines token={token} />
  </ResourcePage>
));
