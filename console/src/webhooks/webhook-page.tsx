/** One webhook: its state, its last deliveries, a ping, a new secret, and how to resume it after it stopped. */
import { Button, Radio, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { useAttempt } from '../shared/forms/attempt.js';
import { AskFirst, Confirm } from '../shared/forms/confirm.js';
import { useJustMade } from '../shared/just-made.js';
import { queryClient } from '../shared/live/queries.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { useDialog } from '../shared/ui/dialog.js';
import { sayDone } from '../shared/ui/done.js';
import { Empty } from '../shared/ui/empty.js';
import { formatCount, formatMilliseconds } from '../shared/ui/format.js';
import { ListTable } from '../shared/ui/list-table.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { SecretOnce } from '../shared/ui/secret-once.js';
import { Section } from '../shared/ui/section.js';
import { StateOf } from '../shared/ui/state-of.js';
import { When } from '../shared/ui/when.js';
import { FilterFacts } from './filter-facts.js';
import { Lag, Outcome } from './webhook-state.js';
import { deliveriesQuery, pingWebhook, resumeWebhook, webhooks, type Delivery, type Webhook } from './webhooks.js';
import { text } from './webhooks.text.js';

export const WebhookPage = resourcePage(webhooks, ({ resource: webhook }) => {
  const made = useJustMade<Schemas['CreatedWebhook']>(webhook.id);
  /** A new secret, until the person has kept it. Only webhooks for programs have one. */
  const [secret, setSecret] = useState(made?.format === 'standard' ? made.secret : undefined);
  return (
    <ResourcePage
      of={webhooks}
      resource={webhook}
      aside={<StateOf kind="webhook" is={webhook.state} />}
      role="admin"
      actions={<Actions webhook={webhook} onSecret={setSecret} />}
      removeMeaning={text.removeMeaning}
      notice={
        secret !== undefined && (
          <SecretOnce title={text.secretTitle} label={text.secret} secret={secret} onKept={() => setSecret(undefined)}>
            {text.secretMeaning}
          </SecretOnce>
        )
      }
      facts={{
        [text.url]: webhook.url,
        [text.format]: text.formats[webhook.format],
        [text.lag]: <Lag lag={webhook.lag} />,
        [text.types]: webhook.types.map((type) => text.shortTypes[type]).join(', '),
        [text.filters]: <FilterFacts filters={webhook.filters} />,
      }}
    >
      <Deliveries id={webhook.id} />
    </ResourcePage>
  );
});

interface ActionsProps {
  readonly webhook: Webhook;
  readonly onSecret: (secret: string | undefined) => void;
}

/** Beyond what one can do with any resource. */
function Actions({ webhook, onSecret }: ActionsProps): ReactNode {
  const { id, name, version, state } = webhook;
  const rotating = useDialog('rotate');
  /** The version that the person saw when the question was opened. */
  const [seen, see] = useState(version);
  if (!rotating.opened && seen !== version) see(version);
  const { working, refused, attempt } = useAttempt();
  const rotate = async (): Promise<void> => {
    const headers = { 'if-match': `"${seen}"` };
    onSecret((await webhooks.update(id, { values: { rotate_secret: true }, headers })).data.secret);
  };
  const ping = (): Promise<void> =>
    attempt(async () => {
      const { data } = await pingWebhook(id);
      const { status, error, duration_ms: took } = data;
      sayDone(error === null ? text.pinged(status ?? 0, formatMilliseconds(took)) : text.pingFailed(error));
      await queryClient.invalidateQueries({ queryKey: deliveriesQuery(id).queryKey });
    });
  return (
    <>
      {refused !== undefined && <Problem error={refused} />}
      <Button size="xs" variant="default" loading={working} onClick={() => void ping()}>
        {text.ping}
      </Button>
      {state !== 'disabled' && <Resume webhook={webhook} />}
      <Button size="xs" variant="default" onClick={rotating.open}>
        {text.rotate}
      </Button>
      <Confirm
        opened={rotating.opened}
        title={text.rotateTitle(name)}
        action={text.rotate}
        onConfirm={rotate}
        onClose={rotating.close}
      >
        {text.rotateMeaning}
      </Confirm>
    </>
  );
}

type From = keyof typeof text.resumeFrom;

const requests: Readonly<Record<From, Schemas['ResumeWebhook']>> = {
  failed: {},
  skip: { skip: true },
  now: { after: 'now' },
  start: { after: 'start' },
};

function Resume({ webhook: { id, name, state } }: { readonly webhook: Webhook }): ReactNode {
  // A webhook that works has no failed item.
  const choices: readonly From[] = state === 'ok' ? ['now', 'start'] : ['failed', 'skip', 'now', 'start'];
  const [chosen, choose] = useState<From>();
  const from = chosen !== undefined && choices.includes(chosen) ? chosen : (choices[0] ?? 'now');
  const resume = async (): Promise<void> => {
    await resumeWebhook(id, requests[from]);
    sayDone(text.resumed(name));
  };
  return (
    <AskFirst
      dialog="resume"
      button={{ size: 'xs', variant: state === 'ok' ? 'default' : 'filled' }}
      title={text.resumeTitle(name)}
      action={text.resume}
      onConfirm={resume}
      mild
    >
      <Stack gap="sm">
        {text.resumeMeaning}
        <Radio.Group label={text.resumeHow} value={from} onChange={(value) => choose(value as From)}>
          <Stack gap="xs" pt="xs">
            {choices.map((choice) => (
              <Radio
                key={choice}
                value={choice}
                label={text.resumeFrom[choice]}
                description={text.resumeHints[choice]}
              />
            ))}
          </Stack>
        </Radio.Group>
      </Stack>
    </AskFirst>
  );
}

const columns = columnsOf<Delivery>([
  [text.at, (row) => <When at={row.at} />],
  [text.type, (row) => text.shortTypes[row.type]],
  [text.answer, (row) => <Outcome {...row} />],
  [text.attempt, (row) => formatCount(row.attempt), { numeric: true, minor: true }],
  [text.duration, (row) => formatMilliseconds(row.duration_ms), { numeric: true }],
  [text.message, (row) => <code>{row.message_id}</code>, { minor: true }],
]);

function Deliveries({ id }: { readonly id: string }): ReactNode {
  return (
    <Section title={text.deliveries}>
      <ListTable
        caption={text.deliveriesCaption}
        columns={columns}
        query={useQuery(deliveriesQuery(id))}
        rowKey={({ message_id: message, attempt, at }) => `${message} ${attempt} ${at}`}
        empty={<Empty title={text.noDeliveries}>{text.noDeliveriesHint}</Empty>}
      />
    </Section>
  );
}
