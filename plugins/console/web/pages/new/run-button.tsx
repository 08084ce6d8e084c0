import { useRef } from 'preact/hooks'
import { askUntilAnswered } from '../../data/api.js'
import { goTo } from '../../data/route.js'
import { UnansweredMessage } from '../../data/unanswered.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { FaultLine } from '../../ui/page.js'
import type { AskedRun } from './asked-run.js'

interface RunButtonProps {
  readonly label: string
  readonly about?: string
  readonly asked: () => AskedRun | Promise<AskedRun>
}

/** Has an agent do something, once a press, and opens its conversation. */
export const RunButton = ({ label, about, asked }: RunButtonProps) => {
  const action = useAction()
  const unanswered = useRef(new UnansweredMessage())
  const work = async () => {
    const run = await asked()
    const messageId = unanswered.current.idFor(run.prompt)
    const conversationId = run.conversationId ?? `run-${messageId}`
    const place = run.conversationId === undefined ? { isolated: true } : {}
    await askUntilAnswered('POST /agent', { ...run, ...place, conversationId, messageId })
    unanswered.current.settle()
    goTo('c', conversationId)
  }
  return (
    <>
      <ActionButton action={action} work={work} {...(about !== undefined && { about })}>
        {label}
      </ActionButton>
      <FaultLine fault={action.fault} />
    </>
  )
}
