/** Opens the command palette, by its button and by Ctrl-K, which work before the palette itself is loaded. */
import { Button, Kbd, Modal } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { lazy, Suspense, useEffect, type ReactNode } from 'react';
import classes from './shell.module.css';
import { text } from './shell.text.js';

const load = () => import('./palette.js');
const Palette = lazy(async () => ({ default: (await load()).Palette }));

export function PaletteButton(): ReactNode {
  const [opened, { open, close }] = useDisclosure();
  useHotkeys([['mod+K', open]], []);
  // Loaded in advance; a failure shows when the palette is opened.
  useEffect(() => void load().catch(() => undefined), []);
  return (
    <>
      <Button
        variant="default"
        size="xs"
        onClick={open}
        className={classes.find}
        leftSection={<IconSearch size={14} />}
        rightSection={<Kbd size="xs">Ctrl K</Kbd>}
      >
        {text.search}
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        withCloseButton={false}
        padding={0}
        size="lg"
        yOffset="12vh"
        attributes={{ content: { 'aria-label': text.search } }}
      >
        <Suspense>
          <Palette onDone={close} />
        </Suspense>
      </Modal>
    </>
  );
}
