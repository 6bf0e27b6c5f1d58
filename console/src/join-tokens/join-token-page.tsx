/**
 * One join token: the machines that it let in, live. The line to paste is shown once, to the person who has just made
 * it.
 */
import { useState } from 'react';
import { useJustMade } from '../shared/just-made.js';
import { Labels } from '../shared/ui/labels.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { SecretOnce } from '../shared/ui/secret-once.js';
import { StateOf } from '../shared/ui/state-of.js';
import { When } from '../shared/ui/when.js';
import { joinTokens, type CreatedJoinToken } from './join-tokens.js';
import { text } from './join-tokens.text.js';
import { tokenState } from './machine-state.js';
import { Machines } from './machines.js';

export const JoinTokenPage = resourcePage(joinTokens, ({ resource: token }) => {
  const made = useJustMade<CreatedJoinToken>(token.id);
  const [kept, setKept] = useState(false);
  return (
    <ResourcePage
      of={joinTokens}
      resource={token}
      aside={<StateOf kind="joinToken" is={tokenState(token)} />}
      removeMeaning={text.removeMeaning}
      removedForGood
      notice={
        made !== undefined &&
        !kept && (
          <SecretOnce title={text.lineTitle} label={text.line} secret={made.command} onKept={() => setKept(true)}>
            {text.lineMeaning(made.uses)} {made.command?.startsWith('curl ') === false && text.plainHttp}
          </SecretOnce>
        )
      }
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
  );
});
