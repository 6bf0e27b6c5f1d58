/**
 * The deployments of a chain on a timeline: who has not applied the newest, and what was rejected; earlier ones, and
 * how to go back to one.
 */
import { Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { Confirm } from '../shared/forms/confirm.js';
import { RolloutChoice, useRollout } from '../shared/forms/rollout-choice.js';
import { queryClient } from '../shared/live/queries.js';
import { useMay } from '../shared/session.js';
import { Changes } from '../shared/ui/changes.js';
import { useDialog } from '../shared/ui/dialog.js';
import { differencesOf } from '../shared/ui/differences.js';
import { sayDone } from '../shared/ui/done.js';
import { formatCount } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import { StateOf } from '../shared/ui/state-of.js';
import { When } from '../shared/ui/when.js';
import {
  deploymentsQuery,
  goBack,
  type Chain,
  type Definition,
  type Deployment,
  type DeploymentNode,
} from './chains.js';
import { text } from './chains.text.js';
import classes from './deployments.module.css';
import { moodOf } from './hop-state.js';

/** More are shown when asked for. */
const shownAtFirst = 8;

export function Deployments({ chain }: { readonly chain: Chain }): ReactNode {
  const { data, error, refetch } = useQuery(deploymentsQuery(chain.id));
  const [all, showAll] = useState(false);
  if (data === undefined) return <NotYet error={error} refetch={refetch} height={160} />;
  const [newest, ...earlier] = data.items;
  if (newest === undefined) return null;
  const shown = all ? earlier : earlier.slice(0, shownAtFirst);
  return (
    <Section title={text.deployments}>
      <ol className={classes.line}>
        <Newest chain={chain} deployment={newest} />
        {shown.map((deployment) => (
          <li key={deployment.id} className={classes.point} data-mood="idle">
            <span className={classes.when}>
              <When at={deployment.at} />
            </span>
            <span>{text.version(formatCount(deployment.chain_version))}</span>
            <span className={classes.quiet}>
              {text.fields(differencesOf(newest.definition, deployment.definition).length)}
            </span>
            <GoBack chain={chain} newest={newest} {...deployment} />
          </li>
        ))}
      </ol>
      {shown.length < earlier.length && (
        <Group>
          <Button size="xs" variant="default" onClick={() => showAll(true)}>
            {text.showOlder(formatCount(earlier.length - shown.length))}
          </Button>
        </Group>
      )}
    </Section>
  );
}

/** With the nodes that have not applied it, and what they say. */
function Newest({ chain, deployment }: { readonly chain: Chain; readonly deployment: Deployment }): ReactNode {
  const { nodes, at, chain_version: version } = deployment;
  const behind = nodes.filter(({ state }) => state !== 'applied');
  const says = behind.length === 0 ? text.allApplied : text.under(nodes.length - behind.length, nodes.length);
  const mood = moodOf(nodes.map(({ state }) => state));
  return (
    <li className={classes.point} data-mood={mood}>
      <span className={classes.when}>
        <When at={at} />
      </span>
      <span>{text.version(formatCount(version))}</span>
      <span role="status">
        <State mood={mood}>{says}</State>
      </span>
      {behind.length > 0 && (
        <ul className={classes.nodes}>
          {behind.map((node) => (
            <li key={node.node_id}>
              <NamedLink type="node" id={node.node_id} /> <StateOf kind="deployment" is={node.state} />
              {node.errors.map((error) => (
                <Rejection key={`${error.resource_id} ${error.path}`} chain={chain} {...error} />
              ))}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

type RejectionProps = DeploymentNode['errors'][number] & { readonly chain: Chain };

/** The agent's words, with a link to the field that they are about. */
function Rejection({ chain, resource_id: resourceId, path, message }: RejectionProps): ReactNode {
  const mayEdit = useMay('operator');
  return (
    <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
      {message} {text.at}{' '}
      {mayEdit && resourceId === chain.id ? (
        <TextLink to="/chains/$id/edit" params={{ id: chain.id }} search={{ field: path }}>
          {path}
        </TextLink>
      ) : (
        path
      )}
    </Text>
  );
}

/** The part of a chain that a deploy publishes. */
const definitionOf = ({ payload, hops, target }: Definition): Definition => ({ payload, hops, target });

type Row = Deployment & { readonly chain: Chain; readonly newest: Deployment };

/** Shows first what it will change, because the service does not ask. */
function GoBack({ chain, newest, ...deployment }: Row): ReactNode {
  const mayDeploy = useMay('operator');
  const { opened, open, close } = useDialog(`back-${deployment.id}`);
  const rollout = useRollout();
  const navigate = useNavigate();
  const { definition } = deployment;
  if (!mayDeploy || definition === undefined || !chain.enabled) return null;
  const confirm = async (): Promise<void> => {
    try {
      const { data, requestId } = await goBack(chain, definition, rollout.query);
      sayDone(text.wentBack(chain.name), { resourceId: chain.id, requestId }, data.warnings);
      if (data.rollout_id) await navigate({ to: '/rollouts/$id', params: { id: data.rollout_id } });
    } finally {
      await queryClient.invalidateQueries({ queryKey: ['l4_chain'] });
    }
  };
  const version = formatCount(deployment.chain_version);
  return (
    <>
      <Anchor component="button" size="sm" style={{ whiteSpace: 'nowrap' }} onClick={open}>
        {text.goBack}
      </Anchor>
      <Confirm
        opened={opened}
        title={text.goBackTo(version)}
        action={text.goBack}
        onConfirm={confirm}
        onClose={close}
        mild
        wide
      >
        <Stack gap="sm">
          {text.goBackMeaning}
          {/* Its waves cannot be previewed: the same step saves what it deploys. */}
          <RolloutChoice chosen={rollout} queryKey={['l4_chain', 'back', deployment.id]} />
          <Changes
            named
            changes={differencesOf(newest.definition && definitionOf(newest.definition), definitionOf(definition))}
            headings={{ before: text.now, after: text.asThen }}
          />
        </Stack>
      </Confirm>
    </>
  );
}
