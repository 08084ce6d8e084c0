import type { Persona, ResolvedPersona } from '../../../../personas/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { countText, visibleName } from '../../ui/format.js'
import { Item, Loaded, PageFrame } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { CardForm } from './card-form.js'
import { KitSection } from './kit-section.js'

const changed = () => refetch(new Set(['personas', 'skills']))

const cardName = ({ id, label }: Pick<Persona, 'id' | 'label'>): string => visibleName(label || id)

/** What a card takes away, in words; nothing taken away is everything. */
const limitsOf = ({ powers = {}, workspace, models = [] }: Persona): string[] => [
  ...(powers.files === 'none' ? ['no files'] : powers.files === 'read' ? ['only reads files'] : []),
  ...(['shell', 'code', 'web', 'browser', 'delegate', 'sandbox'] as const).flatMap(power =>
    powers[power] === false ? [`no ${power === 'delegate' ? 'subagents' : power}`] : [],
  ),
  ...(workspace?.folders?.length ? [`only in ${workspace.folders.join(', ')}`] : []),
  ...(models.length > 0 ? [`on ${models.map(({ provider, model }) => `${provider} ${model}`).join(', ')}`] : []),
]

const CardRow = ({ card, maintains }: { card: Persona; maintains: boolean }) => {
  const { id, brief, capabilities, connected } = card
  const limits = limitsOf(card)
  return (
    <Item
      title={<a href={fragmentOf('personas', id)}>{cardName(card)}</a>}
      state={capabilities.length > connected.length ? ['warn', 'An account is missing'] : undefined}
      detail={
        <>
          {brief && <div dir="auto">{visibleName(brief)}</div>}
          <div>
            <span class="mono">{visibleName(id)}</span> ·{' '}
            {limits.length > 0 ? visibleName(limits.join(', ')) : 'may do everything'}
            {capabilities.length > 0 && ` · speaks for ${visibleName(capabilities.join(', '))}`}
          </div>
        </>
      }
    >
      {maintains && <CardActions card={card} />}
    </Item>
  )
}

const CardActions = ({ card }: { card: Persona }) => (
  <>
    <FormButton label="Edit" about={card.id} form={close => <CardForm card={card} close={close} />} />
    <AskButton
      label="Remove"
      about={card.id}
      title={`Remove ${card.id}?`}
      work={async () => {
        await askDaemon('DELETE /personas/{id}', { id: card.id })
        changed()
        goTo('personas')
      }}
    >
      <p>
        Its prompt and skills are deleted. Its accounts stay connected. Conversations that wear it get no account and no
        tools.
      </p>
    </AskButton>
  </>
)

const Resolved = ({ resolved }: { resolved: ResolvedPersona }) => {
  const { tools, withheld, skills, prompt, model, workspace, usedBy, problems, accounts, notes } = resolved
  const rows: readonly (readonly [name: string, text: string])[] = [
    ['Tools', tools.join(', ') || 'none'],
    ['Taken away', withheld.map(({ tool, by }) => `${tool} (${by})`).join(', ') || 'nothing'],
    [
      'Accounts',
      accounts.map(({ id, kind, connected }) => `${id} (${connected ? kind : 'not connected'})`).join(', ') || 'none',
    ],
    ['Skills', skills.map(({ name }) => name).join(', ') || 'none'],
    ['Instructions', `${prompt.mode}, of the ${prompt.from}, ${countText(prompt.chars)} characters`],
    ['Notes', notes.join(', ') || 'none'],
    ['Model', model ? `${model.provider} ${model.model}` : 'as the sandbox chooses'],
    ['Starts in', workspace.startIn || 'the workspace'],
    ['Folders', workspace.folders.join(', ') || 'the whole workspace'],
    ['Named by', usedBy.map(({ kind, label }) => `${kind} ${label}`).join(', ') || 'nothing'],
  ]
  return (
    <>
      {problems.map(problem => (
        <p key={problem} class="notice warn">
          {visibleName(problem)}
        </p>
      ))}
      <Pairs rows={rows} />
    </>
  )
}

const Card = ({ id }: { id: string }) => {
  const list = useQuery('personas', ['personas', 'capabilities'], () => askDaemon('GET /personas'))
  const resolved = useQuery(`persona ${id}`, ['personas', 'skills', 'capabilities', 'settings', 'extensions'], () =>
    askDaemon('GET /personas/{id}/resolved', { id }),
  )
  const card = list.data?.personas.find(each => each.id === id)
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <PageFrame
      title={card ? cardName(card) : visibleName(id)}
      tools={
        <a class="button" href={fragmentOf('personas')}>
          All personas
        </a>
      }
    >
      {card && maintains && (
        <div class="row">
          <CardActions card={card} />
        </div>
      )}
      <section aria-labelledby="resolved-heading">
        <h2 id="resolved-heading">What its turns get</h2>
        <Loaded query={resolved}>{found => <Resolved resolved={found} />}</Loaded>
      </section>
      <KitSection id={id} maintains={maintains} />
    </PageFrame>
  )
}

const List = () => {
  const list = useQuery('personas', ['personas', 'capabilities'], () => askDaemon('GET /personas'))
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <PageFrame title="Personas">
      <section aria-labelledby="personas-heading">
        <div class="section-head">
          <h2 id="personas-heading">Cards that conversations wear</h2>
          {maintains && <FormButton label="Write a card" primary form={close => <CardForm close={close} />} />}
        </div>
        <Loaded query={list}>
          {({ personas }) =>
            personas.length === 0 ? (
              <p class="quiet">
                A persona says which accounts, tools, folders, models and instructions a conversation gets. Write the
                first card.
              </p>
            ) : (
              <ul class="items">
                {personas.map(card => (
                  <CardRow key={card.id} card={card} maintains={maintains} />
                ))}
              </ul>
            )
          }
        </Loaded>
      </section>
    </PageFrame>
  )
}

/** The characters that conversations wear, and what each may do. */
export const PersonasPage = ({ rest: [id] }: PageProps) => (id ? <Card key={id} id={id} /> : <List />)
