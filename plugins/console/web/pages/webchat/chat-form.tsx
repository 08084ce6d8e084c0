import { useSignal } from '@preact/signals'
import type { Automation, ChatPosition, WebchatConfig } from '../../../../automations/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm } from '../../ui/dialog.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import type { ChatAutomation } from './chats.js'

const POSITIONS: readonly (readonly [ChatPosition, string])[] = [
  ['bottom-right', 'bottom right'],
  ['bottom-left', 'bottom left'],
  ['top-right', 'top right'],
  ['top-left', 'top left'],
]
const ACCESS = [
  ['public', 'everybody'],
  ['signed-in', 'visitors whom the site signed in'],
] as const

const linesOf = (text: string): string[] => text.split(/\s+/).filter(Boolean)

const textOf = (value: number | undefined): string => (value === undefined ? '' : String(value))

interface ChatFormProps {
  readonly close: () => void
  /** What it begins with; its id cannot be changed. */
  readonly given?: ChatAutomation
}

/** Writes the chat of web pages whole. */
export const ChatForm = ({ close, given }: ChatFormProps) => {
  const before = given?.webchat ?? {}
  const id = useSignal(given?.id ?? '')
  const sites = useSignal((given?.trigger.allowedOrigins ?? []).join('\n'))
  const prompt = useSignal(given?.prompt ?? 'Answer the visitor of our web page in a few friendly sentences.')
  const guard = useSignal(given?.guard ?? '')
  const title = useSignal(before.title ?? '')
  const greeting = useSignal(before.greeting ?? '')
  const accent = useSignal(before.accent ?? '#2563eb')
  const position = useSignal<ChatPosition>(before.position ?? 'bottom-right')
  const access = useSignal<'public' | 'signed-in'>(before.access ?? 'public')
  const issuer = useSignal(before.signIn?.issuer ?? '')
  const clientId = useSignal(before.signIn?.clientId ?? '')
  const requireName = useSignal(before.requireName ?? false)
  const puzzle = useSignal((before.antiBot ?? 'pow') === 'pow')
  const day = useSignal(textOf(before.dailyMessageMax))
  const thread = useSignal(textOf(before.conversationMessageMax))
  const minutes = useSignal(textOf(before.sessionTtlMinutes))
  const actsAs = useSignal(given?.actsAs ?? '')
  const approval = useSignal(given?.requireApproval ?? false)
  const enabled = useSignal(given?.enabled ?? true)
  const webchat = (): WebchatConfig => ({
    ...(title.value && { title: title.value }),
    ...(greeting.value && { greeting: greeting.value }),
    ...{ accent: accent.value, position: position.value, access: access.value },
    ...(issuer.value && clientId.value && { signIn: { issuer: issuer.value, clientId: clientId.value } }),
    requireName: requireName.value,
    antiBot: puzzle.value ? 'pow' : 'off',
    ...(day.value && { dailyMessageMax: Number(day.value) }),
    ...(thread.value && { conversationMessageMax: Number(thread.value) }),
    ...(minutes.value && { sessionTtlMinutes: Number(minutes.value) }),
  })
  const save = async () => {
    const {
      requireApproval: _approval,
      actsAs: _persona,
      guard: _guard,
      ...rest
    } = given ?? ({} as Partial<Automation>)
    await askDaemon('POST /automations', {
      ...rest,
      ...{ id: id.value, prompt: prompt.value, enabled: enabled.value, webchat: webchat() },
      trigger: { kind: 'listener', provider: 'webchat', allowedOrigins: linesOf(sites.value) },
      ...(guard.value && { guard: guard.value }),
      ...(approval.value && { requireApproval: true }),
      ...(actsAs.value && { actsAs: actsAs.value }),
    })
    refetch(new Set(['automations']))
  }
  return (
    <DialogForm title={given ? `Change ${visibleName(given.id)}` : 'Add a chat'} close={close} verb="Save" work={save}>
      {!given && (
        <TextField
          label="Id"
          required
          value={id}
          pattern="[a-zA-Z0-9][a-zA-Z0-9_\-]*"
          hint="Letters, digits, hyphens, underscores."
        />
      )}
      <TextField
        label="Sites"
        rows={3}
        value={sites}
        hint="One origin a line, such as https://www.example.org; without any, nobody sees the chat."
      />
      <TextField label="What the agent is asked" required rows={4} value={prompt} />
      {given?.guard !== undefined && (
        <TextField
          label="Guard"
          rows={2}
          value={guard}
          hint="A shell command in the workspace: a message is answered only if this ends with 0."
        />
      )}
      <TextField label="Title" value={title} />
      <TextField label="Greeting" rows={2} value={greeting} />
      <TextField label="Colour" value={accent} pattern="#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})" hint="Such as #2563eb." />
      <ChoiceField label="Corner" value={position} choices={POSITIONS} />
      <ChoiceField label="Who may write" value={access} choices={ACCESS} />
      <TextField label="Issuer of the site’s sign-in" required={access.value === 'signed-in'} value={issuer} />
      <TextField label="Its client id" required={access.value === 'signed-in'} value={clientId} />
      <CheckField label="Visitors say their name" value={requireName} />
      <CheckField label="A puzzle for the browser before the first message" value={puzzle} />
      <TextField label="Messages a day" type="number" min="1" value={day} hint="200 unless set." />
      <TextField label="Messages of one visitor" type="number" min="1" value={thread} />
      <TextField
        label="Minutes of silence after which a thread is closed"
        type="number"
        min="1"
        value={minutes}
        hint="30 days unless set."
      />
      <TextField label="Persona" value={actsAs} hint="front-desk unless set: it may not write files or run commands." />
      <CheckField label="Every answer waits for a person" value={approval} />
      <CheckField label="On" value={enabled} />
    </DialogForm>
  )
}
