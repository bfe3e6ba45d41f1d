# TYPEFORMER_SEPARATE_COMPILATION: what io and text do without knowing the model is compiled once, into a static library that
# the component's users link, instead of in each of their sources. Used by the library's own build and by its package. It serves
# the programs of one project: a target with -m flags of its own, or installed for others, undefines the macro
# it (-UTYPEFORMER_SEPARATE_COMPILATION) and compiles the bodies itself.
#
# typeformer_separate(<component> LIBS <target>...): to be called where typeformer::<component> is known; LIBS: what the bodies call.
function(typeformer_separate component)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS")
  set(target typeformer::${component})
  get_target_property(original ${target} ALIASED_TARGET)
  if(original)
    set(target ${original})
  endif()
  set(bodies typeformer_${component}_bodies)
  if(NOT TARGET ${bodies})
    set(source "${CMAKE_CURRENT_BINARY_DIR}/typeformer_${component}_bodies.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include <typeformer/${component}_impl.hpp>\n")
    add_library(${bodies} STATIC EXCLUDE_FROM_ALL "${source}")
    set_target_properties(${bodies} PROPERTIES POSITION_INDEPENDENT_CODE ON)  # a shared library may link it
    target_compile_features(${bodies} PRIVATE cxx_std_20)
    # Not linked to the component, which links it: its properties are taken over instead.
    target_include_directories(${bodies} PRIVATE "$<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>")
    target_compile_options(${bodies} PRIVATE "$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_OPTIONS>")
    target_compile_definitions(${bodies} PRIVATE TYPEFORMER_SEPARATE_COMPILATION)
    target_link_libraries(${bodies} PUBLIC ${arg_LIBS})
  endif()
  set_property(TARGET ${target} APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS "$<BUILD_INTERFACE:TYPEFORMER_SEPARATE_COMPILATION>")
  set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES "$<BUILD_INTERFACE:${bodies}>")
endfunction()
