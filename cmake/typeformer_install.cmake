# Install rules: headers, one export set per component (loaded only when asked for), version file, pkg-config files.
include(CMakePackageConfigHelpers)
set(package_folder "${CMAKE_INSTALL_DATADIR}/cmake/typeformer")

foreach(component IN LISTS TYPEFORMER_COMPONENTS)
  set(target typeformer)
  if(NOT component STREQUAL "typeformer")
    string(APPEND target "_${component}")
  endif()
  install(TARGETS ${target} EXPORT typeformer_${component} FILE_SET HEADERS FILE_SET cuda_headers)
  install(EXPORT typeformer_${component} NAMESPACE typeformer:: FILE typeformer-${component}-targets.cmake DESTINATION "${package_folder}")
endforeach()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/typeformer-config.cmake.in" typeformer-config.cmake
                              INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file(typeformer-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(
  FILES "${CMAKE_CURRENT_BINARY_DIR}/typeformer-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/typeformer-config-version.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/FindPCRE2_8.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindUtf8proc.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/typeformer_cuda_toolkit.cmake" "${PROJECT_SOURCE_DIR}/cmake/typeformer_separate.cmake"
  DESTINATION "${package_folder}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# typeformer.pc, typeformer-io.pc, typeformer-text.pc: found from their own place, so the prefix may be moved.
file(RELATIVE_PATH pc_prefix "/${CMAKE_INSTALL_DATADIR}/pkgconfig" "/")
function(typeformer_pkg_config name requires libs)
  set(PC_NAME ${name})
  set(PC_REQUIRES "${requires}")
  set(PC_LIBS "${libs}")
  set(PC_PREFIX "\${pcfiledir}/${pc_prefix}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/typeformer.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig")
endfunction()
typeformer_pkg_config(typeformer "" "-pthread")
if("io" IN_LIST TYPEFORMER_COMPONENTS)
  typeformer_pkg_config(typeformer-io "typeformer = ${PROJECT_VERSION}, nlohmann_json" "")
endif()
if("text" IN_LIST TYPEFORMER_COMPONENTS)
  typeformer_pkg_config(typeformer-text "typeformer-io = ${PROJECT_VERSION}, libpcre2-8, libutf8proc" "")
endif()
