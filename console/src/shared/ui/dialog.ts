/** Whether a dialog is open: its address says so, and can be sent to others. */
import { useNavigate, useSearch } from '@tanstack/react-router';

export interface Dialog {
  readonly opened: boolean;
  open(): void;
  close(): void;
}

/** @param name unique on its page */
export function useDialog(name: string): Dialog {
  const { dialog } = useSearch({ strict: false });
  const navigate = useNavigate();
  const show = (shown: string | undefined, replace: boolean): void =>
    void navigate({
      to: '.',
      // What closes late leaves a dialog that was opened meanwhile.
      search: (search) => ((shown ?? search.dialog) === name ? { ...search, dialog: shown } : search),
      replace,
      resetScroll: false,
    });
  return {
    opened: dialog === name,
    open: () => show(name, false),
    close: () => show(undefined, true),
  };
}
