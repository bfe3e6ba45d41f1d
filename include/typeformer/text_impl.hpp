/// The bodies of text.hpp: see io_impl.hpp.
#pragma once
#include "typeformer/text.hpp"
#include "typeformer/text/chat_template_impl.hpp"
#include "typeformer/text/tokenizer_impl.hpp"
