# One folder is one namespace is one target: postrider_<folder>. Its link line is the layering.
# Beside the code: *_test.cpp (pure) and *_pgtest.cpp (needs a real Postgres), one binary each per folder.
# *.sql beside the code is embedded: settle.sql becomes "postrider/delivery/settle/settle.sql.hpp".
# A folder inside another, such as http/server, is a target of its own (postrider_http_server) in the outer namespace.
function(postrider_folder folder)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/postrider/${folder})
  string(REPLACE "/" "_" name ${folder})
  string(REGEX REPLACE "/.*" "" namespace ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  file(GLOB tests CONFIGURE_DEPENDS ${dir}/*_test.cpp)
  file(GLOB pgtests CONFIGURE_DEPENDS ${dir}/*_pgtest.cpp)
  file(GLOB statements CONFIGURE_DEPENDS ${dir}/*.sql)
  if(tests OR pgtests)
    list(REMOVE_ITEM sources ${tests} ${pgtests})
  endif()

  set(generated_dir ${CMAKE_BINARY_DIR}/generated)
  set(generated "")
  foreach(file ${statements})
    get_filename_component(stem ${file} NAME_WE)
    set(out ${generated_dir}/postrider/${folder}/${stem}.sql.hpp)
    add_custom_command(
      OUTPUT ${out}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/embed_sql.py ${file} ${namespace} ${out}
      DEPENDS ${file} ${CMAKE_SOURCE_DIR}/tools/embed_sql.py ${CMAKE_SOURCE_DIR}/tools/typed_sql.py
              ${CMAKE_SOURCE_DIR}/sql/columns.txt)
    list(APPEND generated ${out})
  endforeach()

  # openapi/*.json, one per area, becomes "postrider/api/openapi.json.hpp".
  file(GLOB fragments CONFIGURE_DEPENDS ${dir}/openapi/*.json)
  if(fragments)
    set(out ${generated_dir}/postrider/${folder}/openapi.json.hpp)
    add_custom_command(
      OUTPUT ${out}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/embed_openapi.py ${dir}/openapi ${PROJECT_VERSION} ${out}
      DEPENDS ${fragments} ${CMAKE_SOURCE_DIR}/tools/embed_openapi.py)
    list(APPEND generated ${out})
  endif()
  # docs/*.{html,css,js,svg} become constants in "postrider/api/docs_files.hpp".
  file(GLOB pages CONFIGURE_DEPENDS ${dir}/docs/*.html ${dir}/docs/*.css ${dir}/docs/*.js ${dir}/docs/*.svg)
  if(pages)
    set(out ${generated_dir}/postrider/${folder}/docs_files.hpp)
    add_custom_command(
      OUTPUT ${out}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/embed_files.py ${namespace} ${out} ${pages}
      DEPENDS ${pages} ${CMAKE_SOURCE_DIR}/tools/embed_files.py)
    list(APPEND generated ${out})
  endif()

  if(NOT sources AND NOT generated)
    add_library(postrider_${name} INTERFACE)
    target_include_directories(postrider_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src ${generated_dir})
    target_link_libraries(postrider_${name} INTERFACE ${ARG_LINKS})
  else()
    if(NOT sources)
      file(WRITE ${CMAKE_BINARY_DIR}/empty_${name}.cpp "")
      set(sources ${CMAKE_BINARY_DIR}/empty_${name}.cpp)
    endif()
    add_library(postrider_${name} STATIC ${sources} ${generated})
    target_include_directories(postrider_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${generated_dir})
    target_link_libraries(postrider_${name} PUBLIC ${ARG_LINKS})
  endif()

  if(POSTRIDER_TESTS)
    if(tests)
      add_executable(${name}_test ${tests})
      target_link_libraries(${name}_test PRIVATE postrider_${name} GTest::gmock GTest::gtest_main)
      add_test(NAME ${name}_test COMMAND ${name}_test)
    endif()
    if(pgtests)
      add_executable(${name}_pgtest ${pgtests})
      target_link_libraries(${name}_pgtest PRIVATE postrider_${name} postrider_test_support GTest::gmock GTest::gtest_main)
      add_test(NAME ${name}_pgtest COMMAND ${name}_pgtest)
      set_tests_properties(${name}_pgtest PROPERTIES LABELS pg)
    endif()
  endif()
endfunction()
