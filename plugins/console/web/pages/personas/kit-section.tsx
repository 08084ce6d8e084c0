import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { askDaemon, faultSentence } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { TextBlock } from '../../ui/text-block.js'

const changed = () => refetch(new Set(['personas', 'skills']))

const PromptForm = ({ id, prompt, close }: { id: string; prompt: string; close: () => void }) => {
  const text = useSignal(prompt)
  return (
    <DialogForm
      title={`The prompt of ${id}`}
      verb="Save"
      close={close}
      work={async () => {
        await askDaemon('POST /personas/{id}/prompt', { id, prompt: text.value })
        changed()
      }}
    >
      <TextField label="Prompt" value={text} rows={12} hint="It is used where the card's instructions are its own." />
    </DialogForm>
  )
}

const KitSkillForm = ({ id, name: edited, close }: { id: string; name?: string; close: () => void }) => {
  const name = useSignal(edited ?? '')
  const description = useSignal('')
  const body = useSignal('')
  const fault = useSignal('')
  useEffect(() => {
    if (edited === undefined) return
    askDaemon('GET /personas/{id}/skills/read', { id, name: edited }).then(
      found => {
        description.value = found.description
        body.value = found.body
      },
      error => {
        fault.value = faultSentence(error)
      },
    )
  }, [])
  return (
    <DialogForm
      title={edited ? `Edit ${edited}` : `A skill of ${id}`}
      verb="Save"
      close={close}
      ready={name.value !== '' && description.value !== '' && body.value !== ''}
      work={async () => {
        await askDaemon('POST /personas/{id}/skills', {
          ...{ id, name: name.value, description: description.value, body: body.value },
        })
        changed()
      }}
    >
      {!edited && <TextField label="Name" value={name} required hint="Lower case letters, digits and dashes." />}
      <TextField label="When to use it" value={description} required rows={2} />
      <TextField label="Instructions" value={body} required rows={10} />
      <FaultLine fault={fault.value} />
    </DialogForm>
  )
}

/** The prompt of a card, and the skills that only its conversations have. */
export const KitSection = ({ id, maintains }: { id: string; maintains: boolean }) => {
  const kit = useQuery(`kit ${id}`, ['personas', 'skills'], () => askDaemon('GET /personas/{id}/kit', { id }))
  return (
    <section aria-labelledby="kit-heading">
      <div class="section-head">
        <h2 id="kit-heading">Its kit</h2>
        {maintains && kit.data && (
          <>
            <FormButton
              label="Prompt"
              about={`of ${id}`}
              form={close => <PromptForm id={id} prompt={kit.data!.prompt} close={close} />}
            />
            <FormButton label="Add a skill" about={`to ${id}`} form={close => <KitSkillForm id={id} close={close} />} />
          </>
        )}
      </div>
      <Loaded query={kit}>
        {({ prompt, skills }) => (
          <>
            {prompt ? (
              <TextBlock class="plain-text" dir="auto" what="the prompt" text={prompt} />
            ) : (
              <p class="quiet">It has no prompt of its own.</p>
            )}
            <ul class="items">
              {skills.map(({ name, description }) => (
                <Item key={name} title={visibleName(name)} detail={visibleName(description)}>
                  {maintains && (
                    <>
                      <FormButton
                        label="Edit"
                        about={name}
                        form={close => <KitSkillForm id={id} name={name} close={close} />}
                      />
                      <AskButton
                        label="Remove"
                        about={name}
                        title={`Remove ${name}?`}
                        work={async () => {
                          await askDaemon('POST /personas/{id}/skills/remove', { id, name })
                          changed()
                        }}
                      >
                        <p>Its folder is deleted.</p>
                      </AskButton>
                    </>
                  )}
                </Item>
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </section>
  )
}
