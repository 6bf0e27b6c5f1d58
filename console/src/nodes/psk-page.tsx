/**
 * The guided rotation of a node's PSK: a second one is made, put on the machine, and adopted by its agent, which ends
 * the first. Only the page holds the secret. Implements `docs/contract/rollouts.md#guided-rotation` for people.
 */
import { Button, Code, Group, NumberInput, Stack, Text } from '@mantine/core';
import { useEffect, useState, type ReactNode } from 'react';
import { useAttempt } from '../shared/forms/attempt.js';
import { AskFirst } from '../shared/forms/confirm.js';
import { queryClient } from '../shared/live/queries.js';
import { useMay } from '../shared/session.js';
import { CopyField } from '../shared/ui/copy-field.js';
import { sayDone } from '../shared/ui/done.js';
import { Facts } from '../shared/ui/facts.js';
import { Guide } from '../shared/ui/guide.js';
import { LinkButton } from '../shared/ui/links.js';
import { StateOf } from '../shared/ui/state-of.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { resourcePage } from '../shared/ui/resource-page.js';
import { SecretOnce } from '../shared/ui/secret-once.js';
import { Section } from '../shared/ui/section.js';
import { Sign, type Mood } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { dropCandidate, makeCandidate, nodes, type MadeCandidate, type Node } from './nodes.js';
import { rotationOf, type PskRotation } from './psk-rotation.js';
import { pskCommands, pskText as text } from './psk.text.js';

const usualDays = 7;

export const PskPage = resourcePage(nodes, ({ resource: node }) => {
  const { id, name, psk_candidate: candidate } = node;
  const mayRotate = useMay('operator');
  /** The second PSK, while it is shown; its secret is null if the answer no longer had it. */
  const [made, setMade] = useState<MadeCandidate>();
  const [seen, setSeen] = useState<string>();
  useEffect(() => {
    if (candidate !== null) setSeen(candidate.fingerprint);
  }, [candidate]);
  const rotation = rotationOf(node, seen);
  return (
    <Page
      title={text.title(name)}
      aside={<StateOf kind="node" is={node.status} />}
      actions={
        <LinkButton variant="default" to="/nodes/$id" params={{ id }}>
          {name}
        </LinkButton>
      }
    >
      <Section title={text.now}>
        <Now node={node} />
      </Section>
      {mayRotate && node.psk_fingerprint === null && <Text size="sm">{text.withoutPsk}</Text>}
      {mayRotate && node.psk_fingerprint !== null && (
        <>
          <Section title={text.steps}>
            <Guide
              steps={[
                {
                  title: text.make,
                  done: rotation.state === 'waiting' || rotation.state === 'over',
                  meaning: text.makeMeaning,
                  children: <Make id={id} rotation={rotation} onMade={setMade} />,
                },
                {
                  title: text.put,
                  done: rotation.state === 'over',
                  meaning: text.putMeaning,
                  children: rotation.state === 'waiting' && (
                    <Stack gap="sm">
                      {/* Somebody else may have made another one. */}
                      {made !== undefined && made.psk_candidate?.fingerprint === candidate?.fingerprint && (
                        <SecretOnce
                          title={text.secret}
                          label={text.secret}
                          secret={made.control_psk}
                          onKept={() => setMade(undefined)}
                        >
                          {text.once}
                        </SecretOnce>
                      )}
                      <CopyField label={text.commands} value={pskCommands} />
                    </Stack>
                  ),
                },
                {
                  title: text.prove,
                  done: rotation.state === 'over',
                  meaning: text.proveMeaning,
                  children: <Progress rotation={rotation} />,
                },
              ]}
            />
          </Section>
          <Section title={text.atOnce}>
            <Text size="sm">{text.atOnceMeaning}</Text>
            <Group>
              <LinkButton variant="default" to="/nodes/$id" params={{ id }} search={{ dialog: 'psk' }}>
                {text.toNode}
              </LinkButton>
            </Group>
          </Section>
        </>
      )}
    </Page>
  );
});

/** The node's PSKs, and the one that its session uses: the first session under the second makes it the current one. */
function Now({ node }: { readonly node: Node }): ReactNode {
  const { psk_fingerprint: current, psk_issued_at: issued, psk_candidate: candidate, status } = node;
  return (
    <Facts
      facts={{
        [text.current]: current !== null && (
          <>
            <Code>{current}</Code> {text.issued} <When at={issued} />
          </>
        ),
        [text.session]: status === 'online' ? text.underCurrent : text.none,
        [text.candidate]:
          candidate === null ? (
            text.noCandidate
          ) : (
            <>
              <Code>{candidate.fingerprint}</Code> {text.validUntil} <When at={candidate.expires_at} />
            </>
          ),
      }}
    />
  );
}

interface MakeProps {
  readonly id: string;
  readonly rotation: PskRotation;
  readonly onMade: (made: MadeCandidate) => void;
}

function Make({ id, rotation, onMade }: MakeProps): ReactNode {
  const [days, setDays] = useState<number | string>(usualDays);
  const { working, refused, attempt } = useAttempt();
  const waiting = rotation.state === 'waiting';
  const make = (): Promise<void> =>
    attempt(async () => {
      onMade(await makeCandidate(id, Number(days) || usualDays));
      await queryClient.invalidateQueries({ queryKey: ['node'] });
    });
  return (
    <>
      {refused !== undefined && <Problem error={refused} />}
      {waiting && <Text size="sm">{text.anotherMeaning}</Text>}
      <Group align="flex-end">
        <NumberInput label={text.days} value={days} onChange={setDays} min={1} max={30} allowDecimal={false} w={220} />
        <Button variant={waiting ? 'default' : 'filled'} loading={working} onClick={() => void make()}>
          {waiting ? text.another : text.makeIt}
        </Button>
        {waiting && <TakeBack id={id} />}
      </Group>
    </>
  );
}

function TakeBack({ id }: { readonly id: string }): ReactNode {
  return (
    <AskFirst
      dialog="take-back"
      title={text.takeBackTitle}
      action={text.takeBack}
      onConfirm={async () => {
        const { requestId } = await dropCandidate(id);
        await queryClient.invalidateQueries({ queryKey: ['node'] });
        sayDone(text.takenBack, { resourceId: id, requestId });
      }}
    >
      {text.takeBackMeaning}
    </AskFirst>
  );
}

/** A sentence with a sign, which may need several lines. */
function Signed({ mood, children }: { readonly mood: Mood; readonly children: string }): ReactNode {
  return (
    <Group gap={6} wrap="nowrap" align="flex-start">
      <Sign mood={mood} />
      <span>{children}</span>
    </Group>
  );
}

function Progress({ rotation }: { readonly rotation: PskRotation }): ReactNode {
  const sentences = {
    none: null,
    waiting: <Signed mood="busy">{text.waiting}</Signed>,
    over: <Signed mood="good">{text.over}</Signed>,
    gone: <Signed mood="warning">{text.gone}</Signed>,
  };
  return (
    <Text size="sm" component="div" aria-live="polite">
      {sentences[rotation.state]}
    </Text>
  );
}
