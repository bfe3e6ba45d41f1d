/// Tokenizers, chat templates and text generation; includes io.hpp.
#pragma once
#include "typeformer/io.hpp"
#include "typeformer/text/chat_template.hpp"
#include "typeformer/text/generate.hpp"
#include "typeformer/text/stream_decoder.hpp"
#include "typeformer/text/tokenizer.hpp"
