import { readFile } from 'node:fs/promises'
import type { Handlers, Host } from '../../../sdk/index.js'
import { forms, type Forms } from './contract.js'

export const contract = forms

/** Echoes its input. */
export const activate = async (host: Host): Promise<void> => {
  const handlers: Handlers<Forms> = {
    'POST /forms/text': input => ({ given: JSON.stringify(input) }),
    'POST /forms/fields': input => ({ given: JSON.stringify(input) }),
    'POST /forms/file': async input => ({
      given: JSON.stringify(input),
      held: await readFile(input.file.path, 'utf8'),
    }),
  }
  await host.serve(forms, handlers)
}
