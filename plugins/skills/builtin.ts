import type { SkillText } from './contract.js'

/** The skills that ship with the sandbox; off unless the settings switch them on. */
export const BUILTIN: { readonly [name: string]: SkillText } = {
  'stored-secrets': {
    description:
      'Use it when a command, a script or a request needs a password, a token or a key that the sandbox keeps.',
    body: `Values of secrets are never shown to you. Write a reference in their place: {{secret:NAME}}.

- In a command of the tool Shell, in a program of the tool Code, and in the address, the headers or the body of the
  tool Fetch, the value takes the place of the reference as the call leaves.
- A file keeps the reference as it is. Read the value from an environment variable there, and set the variable in the
  command: TOKEN={{secret:TOKEN}} node script.js
- A name that this turn may not use stops the call, and the refusal lists the names that it may use.
- Values that come back in a result are replaced by their reference.
`,
  },
  subagents: {
    description:
      'Use it when parts of a task do not depend on each other, or a part would fill the conversation with text.',
    body: `The tool Delegate gives a part of the work to a subagent, which works in the same files.

- A subagent knows nothing of the conversation: say in its prompt what it is to do, where, and what to answer.
- With background: true it works beside you; the tool Join waits for it.
- Give parts to several subagents only when they write to different files.
- Its last words are all that comes back. Ask for paths and findings, and look at the files yourself.
- The number of subagents at once, in a turn and in depth is limited; a refusal says which limit it was.
`,
  },
}
