import anthropic from '../shipped/anthropic.json' with { type: 'json' }
import deepseek from '../shipped/deepseek.json' with { type: 'json' }
import google from '../shipped/google.json' with { type: 'json' }
import groq from '../shipped/groq.json' with { type: 'json' }
import mistral from '../shipped/mistral.json' with { type: 'json' }
import openai from '../shipped/openai.json' with { type: 'json' }
import openrouter from '../shipped/openrouter.json' with { type: 'json' }
import { checkedDefinition } from './checked.js'
import type { ProviderDefinition } from './contract.js'

/** The definitions that come with the sandbox. */
export const shippedDefinitions = (): ProviderDefinition[] =>
  [anthropic, openai, google, openrouter, mistral, groq, deepseek].map(each =>
    checkedDefinition(`${each.id}.json`, JSON.stringify(each)),
  )
