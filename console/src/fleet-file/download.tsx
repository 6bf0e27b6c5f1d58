/** Downloads the fleet as files, one for each set. */
import { Button, Group } from '@mantine/core';
import type { ReactNode } from 'react';
import { useAttempt } from '../shared/forms/attempt.js';
import { sayDone } from '../shared/ui/done.js';
import { Problem } from '../shared/ui/problem.js';
import { saveFleet } from './save-fleet.js';
import { text } from './fleet-file.text.js';

interface DownloadButtonProps {
  readonly label: string;
  /** Absent: all sets. */
  readonly set?: string;
}

export function DownloadButton({ label, set }: DownloadButtonProps): ReactNode {
  const { working, refused, attempt } = useAttempt();
  const download = (): Promise<void> =>
    attempt(async () => {
      if ((await saveFleet(set)) === 0) sayDone(text.nothingToExport);
    });
  return (
    <Group gap="xs">
      {refused !== undefined && <Problem error={refused} />}
      <Button size="xs" variant="default" loading={working} onClick={() => void download()}>
        {label}
      </Button>
    </Group>
  );
}
